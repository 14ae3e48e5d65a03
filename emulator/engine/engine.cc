#include "emulator/engine/engine.h"

#include <algorithm>

#include "emulator/engine/cm/rdma_cm.h"
#include "emulator/engine/commands.h"
#include "emulator/engine/fabric.h"
#include "emulator/engine/receive_queue.h"
#include "emulator/engine/send_queue.h"

namespace rocemu::engine {
namespace {

struct Apply {
  Fabric& fabric;
  cm::RdmaCm& rdma_cm;
  Outputs& outputs;

  void operator()(const AttachClient& input) const { fabric.attach(input); }
  void operator()(const DetachClient& input) const { fabric.detach(input.client); }
  void operator()(const Command& input) const {
    outputs.reply = execute(fabric, input.client, input.request);
  }
  void operator()(const PostSend& input) const {
    if (fabric.has_lost_its_device(input.client)) return;  // rung in vain
    QueuePair* qp = fabric.qp_of(input.client, input.qp);
    if (qp == nullptr) return fabric.violation(input.client, "send doorbell for a QP not its own");
    if (qp->send.queue.full()) {
      return fabric.violation(input.client, "more send WQEs than the QP has room for");
    }
    if (input.wqe.size() != qp->send.queue.stride()) {
      return fabric.violation(input.client, "send WQE of the wrong size");
    }
    send_queue::post(fabric, *qp, input.wqe);
  }
  void operator()(const PostRecv& input) const {
    if (fabric.has_lost_its_device(input.client)) return;  // rung in vain
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
    receive_queue::post(fabric, *qp, input.wqe);
  }
  void operator()(const PostSrqRecv& input) const {
    if (fabric.has_lost_its_device(input.client)) return;  // rung in vain
    SharedReceiveQueue* srq = fabric.srq_of(input.client, input.srq);
    if (srq == nullptr) {
      return fabric.violation(input.client, "receive doorbell for an SRQ not its own");
    }
    if (srq->full()) {
      return fabric.violation(input.client, "more receive WQEs than the SRQ has room for");
    }
    if (input.wqe.size() != srq->queue.stride()) {
      return fabric.violation(input.client, "receive WQE of the wrong size");
    }
    srq->queue.push(input.wqe);
  }
  void operator()(const ArmCq& input) const {
    if (fabric.has_lost_its_device(input.client)) return;  // rung in vain
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
  void operator()(const SetPort& input) const { fabric.set_port(input.device, input.up); }
  void operator()(const RemoveDevice& input) const {
    fabric.remove_device(input.device);
    rdma_cm.remove_device(input.device);
  }
  void operator()(const OpenCmChannel&) const {}
  void operator()(const CloseCmChannel& input) const { rdma_cm.close(input.channel); }
  void operator()(const CmCommand& input) const { outputs.cm_reply = rdma_cm.execute(input); }
  void operator()(const Tick&) const {}
};

}  // namespace

Engine::Engine(FabricConfig config, HostMemory& memory)
    : fabric_(std::make_unique<Fabric>(std::move(config), memory)),
      rdma_cm_(std::make_unique<cm::RdmaCm>(*fabric_)) {}

Engine::~Engine() = default;

void Engine::step(Instant now, const Input& input, Outputs& outputs) {
  fabric_->begin_step(now, outputs);
  rdma_cm_->begin_step(outputs);
  std::visit(Apply{*fabric_, *rdma_cm_, outputs}, input);
  do {
    fabric_->run();
  } while (rdma_cm_->handle_events());
}

std::optional<Instant> Engine::next_deadline() {
  const std::optional<Instant> fabric = fabric_->next_deadline();
  const std::optional<Instant> rdma_cm = rdma_cm_->next_deadline();
  if (!fabric || !rdma_cm) return fabric ? fabric : rdma_cm;
  return std::min(*fabric, *rdma_cm);
}

}  // namespace rocemu::engine
