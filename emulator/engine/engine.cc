#include "emulator/engine/engine.h"

#include "emulator/engine/commands.h"
#include "emulator/engine/fabric.h"
#include "emulator/engine/requester.h"
#include "emulator/engine/responder.h"

namespace rocemu::engine {
namespace {

struct Apply {
  Fabric& fabric;
  Outputs& outputs;

  void operator()(const AttachClient& input) const { fabric.clients[input.client] = input.device; }
  void operator()(const DetachClient& input) const { fabric.detach(input.client); }
  void operator()(const Command& input) const {
    outputs.reply = execute(fabric, input.client, input.request);
  }
  void operator()(const PostSend& input) const {
    QueuePair* qp = fabric.qp_of(input.client, input.qp);
    if (qp == nullptr) return fabric.violation(input.client, "send doorbell for a QP not its own");
    if (qp->send.queue.full()) {
      return fabric.violation(input.client, "more send WQEs than the QP has room for");
    }
    if (input.wqe.size() != qp->send.queue.stride()) {
      return fabric.violation(input.client, "send WQE of the wrong size");
    }
    requester::post(fabric, *qp, input.wqe);
  }
  void operator()(const PostRecv& input) const {
    QueuePair* qp = fabric.qp_of(input.client, input.qp);
    if (qp == nullptr) {
      return fabric.violation(input.client, "receive doorbell for a QP not its own");
    }
    if (qp->recv.queue.full()) {
      return fabric.violation(input.client, "more receive WQEs than the QP has room for");
    }
    if (input.wqe.size() != qp->recv.queue.stride()) {
      return fabric.violation(input.client, "receive WQE of the wrong size");
    }
    responder::post(fabric, *qp, input.wqe);
  }
  void operator()(const ArmCq& input) const {
    CompletionQueue* cq = fabric.cq_of(input.client, input.cq);
    if (cq == nullptr) return fabric.violation(input.client, "arm doorbell for a CQ not its own");
    switch (cq->arm(input.producer, input.solicited_only)) {
      case CompletionQueue::ArmResult::kArmed:
        return;
      case CompletionQueue::ArmResult::kEventDue:
        if (cq->channel.value != 0) {
          outputs.list.emplace_back(
              CompletionEvent{cq->client, cq->id, cq->channel, cq->user_handle});
        }
        return;
      case CompletionQueue::ArmResult::kImpossible:
        return fabric.violation(input.client, "armed a CQ behind completions that are not there");
    }
  }
  void operator()(const ReceiveFrame& input) const { fabric.receive(input.device, input.bytes); }
  void operator()(const Tick&) const {}
};

}  // namespace

Engine::Engine(FabricConfig config, HostMemory& memory)
    : fabric_(std::make_unique<Fabric>(std::move(config), memory)) {}

Engine::~Engine() = default;

void Engine::step(Instant now, const Input& input, Outputs& outputs) {
  fabric_->begin_step(now, outputs);
  std::visit(Apply{*fabric_, outputs}, input);
  fabric_->run();
}

std::optional<Instant> Engine::next_deadline() {
  return fabric_->next_deadline();
}

}  // namespace rocemu::engine
