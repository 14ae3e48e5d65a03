#include "emulator/engine/engine.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "emulator/engine/fabric.h"
#include "emulator/engine/faults/request_faults.h"
#include "emulator/engine/objects/port.h"
#include "emulator/engine/rdmacm/rdma_cm.h"
#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/send_queue.h"
#include "emulator/engine/verbs/commands.h"

namespace rocemu::engine {
namespace {

/// Returns whether an input's bytes are one or more whole WQEs of a queue with this stride.
bool are_wqes(std::span<const std::byte> wqes, size_t stride) {
  return stride != 0 && !wqes.empty() && wqes.size() % stride == 0;
}

struct Apply {
  Fabric& fabric;
  cm::RdmaCm& rdma_cm;
  Outputs& outputs;

  void operator()(const AttachClient& input) const {
    fabric.objects.clients.attach(input.client, input.device, input.shares_with);
  }
  void operator()(const DetachClient& input) const {
    fabric.transport.memory().end_copies();
    if (fabric.adversary) fabric.adversary->drop(input.client);
    fabric.leaving.detach(input.client);
    fabric.faults.processes.forget(input.client);
  }
  void operator()(const Command& input) const {
    fabric.deliver_delayed(input.client);
    outputs.reply = execute(fabric.commands, input.client, input.request);
  }
  void note_post(ClientId client) const {
    fabric.objects.device_of(client).has_been_posted_to = true;
  }
  void operator()(const PostSend& input) const {
    if (fabric.objects.has_lost_its_device(input.client)) return;  // the doorbell has no effect
    QueuePair* qp = fabric.objects.qp_of(input.client, input.qp);
    if (qp == nullptr) return violation(input.client, "send doorbell for a QP of another client");
    const size_t stride = qp->send.queue.stride();
    if (!are_wqes(input.wqes, stride)) {
      return violation(input.client, "send WQE of the wrong size");
    }
    note_post(input.client);
    for (size_t at = 0; at < input.wqes.size(); at += stride) {
      if (qp->send.queue.full()) {
        return violation(input.client, "more send WQEs than the QP has room for");
      }
      send_queue::post(fabric.transport, *qp, input.wqes.subspan(at, stride));
      if (fabric.write_races.is_watching()) [[unlikely]]
        fabric.write_races.note_post(fabric.transport, *qp);
    }
  }
  void operator()(const PostRecv& input) const {
    if (fabric.objects.has_lost_its_device(input.client)) return;  // the doorbell has no effect
    QueuePair* qp = fabric.objects.qp_of(input.client, input.qp);
    if (qp == nullptr) {
      return violation(input.client, "receive doorbell for a QP of another client");
    }
    const size_t stride = qp->recv.queue.stride();
    if (!are_wqes(input.wqes, stride)) {
      return violation(input.client, "receive WQE of the wrong size");
    }
    note_post(input.client);
    for (size_t at = 0; at < input.wqes.size(); at += stride) {
      if (qp->recv.queue.full()) {
        return violation(input.client, "more receive WQEs than the QP has room for");
      }
      receive_queue::post(fabric.transport, *qp, input.wqes.subspan(at, stride));
    }
  }
  void operator()(const PostSrqRecv& input) const {
    if (fabric.objects.has_lost_its_device(input.client)) return;  // the doorbell has no effect
    SharedReceiveQueue* srq = fabric.objects.srq_of(input.client, input.srq);
    if (srq == nullptr) {
      return violation(input.client, "receive doorbell for an SRQ of another client");
    }
    const size_t stride = srq->queue.stride();
    if (!are_wqes(input.wqes, stride)) {
      return violation(input.client, "receive WQE of the wrong size");
    }
    note_post(input.client);
    for (size_t at = 0; at < input.wqes.size(); at += stride) {
      if (srq->full()) {
        return violation(input.client, "more receive WQEs than the SRQ has room for");
      }
      srq->queue.push(input.wqes.subspan(at, stride));
    }
  }
  void operator()(const ArmCq& input) const {
    if (fabric.objects.has_lost_its_device(input.client)) return;  // the doorbell has no effect
    fabric.completions.arm(input);
  }
  void operator()(const ReceivedFrames& input) const { fabric.receive(input); }
  void operator()(const SetPort& input) const {
    fabric.transport.memory().end_copies();
    set_port(fabric.objects, fabric.faults.events, input.device, input.up);
  }
  void operator()(const RemoveDevice& input) const {
    fabric.remove_device(input.device);
    rdma_cm.remove_device(input.device);
  }
  void operator()(const AddRules& input) const {
    fabric.transport.memory().end_copies();
    fabric.faults.add(*input.rules);
    for (const faults::Rule& rule : input.rules->rules) {
      if (rule.where != faults::Where::kNow || !rule.effects.raise_cm) continue;
      rdma_cm.raise(
          *rule.effects.raise_cm, rule.effects.cm_status.value_or(0),
          rule.which.device ? fabric.faults.rules.device_named(*rule.which.device) : std::nullopt);
    }
  }
  void operator()(const RemoveRules& input) const {
    if (input.name) {
      fabric.faults.remove(*input.name);
    } else {
      fabric.faults.clear();
    }
  }
  void operator()(const OpenCmChannel&) const {}
  void operator()(const NameProcess& input) const {
    std::visit(
        [&](auto id) {
          fabric.faults.processes.name(
              id, ProcessName{.program = input.program, .number = input.number});
        },
        input.of);
  }
  void operator()(const CloseCmChannel& input) const {
    rdma_cm.close(input.channel);
    fabric.faults.processes.forget(input.channel);
  }
  void operator()(const CmCommand& input) const {
    // The rules for rdma_get_cm_event() were applied when the event was created
    // (EventOutput::emit). This command arrives only after the program has read the event.
    if (fabric.faults.watches(faults::Where::kVerb) &&
        input.command != abi::ucma::Command::kGetEvent) [[unlikely]] {
      if (const int error = faults::verb_fault(fabric.faults, input)) {
        outputs.cm_reply = CmReply{.error = error, .response = {}};
        return;
      }
    }
    outputs.cm_reply = rdma_cm.execute(input);
  }
  void operator()(const Pause& input) const {
    fabric.transport.memory().end_copies();
    fabric.link.set_paused(input.paused);
  }
  void operator()(const ReleaseFrames& input) const { fabric.link.release(input.count); }
  void operator()(const MemoryReady&) const { fabric.go_on_with_memory(); }
  void operator()(const Tick&) const { fabric.leaving.release(); }

 private:
  void violation(ClientId client, const char* reason) const {
    fabric.step.emit(ClientViolation{client, reason});
  }
};

/// Returns whether the input can have no effect on frames unless it has an immediate output. Such
/// an input does not run the fabric, because a client can send thousands of them at a time.
bool moves_no_frame(const Input& input) {
  return std::holds_alternative<PostRecv>(input) || std::holds_alternative<PostSrqRecv>(input) ||
         std::holds_alternative<ArmCq>(input);
}

}  // namespace

Engine::Engine(FabricConfig config, HostMemory& memory)
    : fabric_(std::make_unique<Fabric>(std::move(config), memory)),
      rdma_cm_(std::make_unique<cm::RdmaCm>(fabric_->environment, fabric_->connections,
                                            fabric_->faults, fabric_->config().seed)) {}

Engine::~Engine() = default;

void Engine::step(Instant outer_now, const Input& input, Outputs& outputs) {
  if (const auto* pause = std::get_if<Pause>(&input)) clock_.pause(outer_now, pause->paused);
  if (const auto* release = std::get_if<ReleaseFrames>(&input)) move_time(*release);
  const Instant now = clock_.inner(outer_now);
  const size_t before = outputs.list.size();
  fabric_->begin_step(now, outputs);
  rdma_cm_->begin_step(outputs);
  std::visit(Apply{*fabric_, *rdma_cm_, outputs}, input);
  if (std::holds_alternative<Tick>(input)) fabric_->begin_expiry();
  if (moves_no_frame(input) && outputs.list.size() == before) return;
  do {
    fabric_->run();
  } while (rdma_cm_->handle_events() || remove_devices());
  // If a rule paused the link in this step, the clock is paused, too.
  if (fabric_->link.paused()) clock_.pause(outer_now, true);
}

bool Engine::remove_devices() {
  const std::vector<DeviceIndex> devices = fabric_->faults.devices.take_removals();
  for (const DeviceIndex device : devices) {
    fabric_->remove_device(device);
    rdma_cm_->remove_device(device);
  }
  return !devices.empty();
}

FabricSnapshot Engine::snapshot() const {
  return take_snapshot(*fabric_, *rdma_cm_);
}

void Engine::watch_write_races() {
  fabric_->write_races.watch();
}

bool Engine::has_device(DeviceIndex device) const {
  return !fabric_->objects.devices[device].removed;
}

bool Engine::is_releasing() const {
  return !fabric_->leaving.empty();
}

bool Engine::has_frames_under_way() const {
  return fabric_->has_frames_under_way();
}

bool Engine::has_frames_in_network() const {
  return !fabric_->crossing.empty();
}

SimulatedNetwork* Engine::simulated_network() {
  return fabric_->crossing.network();
}

const SimulatedNetwork* Engine::simulated_network() const {
  return fabric_->crossing.network();
}

bool Engine::is_idle() const {
  return fabric_->is_idle() && !rdma_cm_->next_deadline();
}

std::vector<faults::RuleReport> Engine::rule_reports() const {
  return fabric_->faults.rules.report();
}

uint32_t Engine::asked_for() const {
  return fabric_->faults.rules.asked_for();
}

std::optional<Instant> Engine::next_deadline() {
  const std::optional<Instant> next = next_event_time();
  if (!next) return std::nullopt;
  if (!clock_.paused()) return clock_.outer(*next);
  // While the clock is paused, only work that the latest step left undone is due.
  if (*next <= clock_.inner({})) return Instant{};
  return std::nullopt;
}

bool Engine::awaits_only_rules() {
  return fabric_->faults.network.next_deadline() && !fabric_->next_deadline_of_work() &&
         !rdma_cm_->next_deadline();
}

std::vector<wire::IpAddress> Engine::addresses(DeviceIndex device) const {
  return fabric_->objects.devices[device].config.addresses;
}

const DeviceProfile& Engine::profile(DeviceIndex device) const {
  return *fabric_->objects.devices[device].config.profile;
}

std::span<const uint8_t> Engine::next_frame() {
  const Link& link = fabric_->link;
  if (link.empty()) return {};
  const InFlight& front = link.front();
  if (clock_.paused() && !link.has_arrived(clock_.inner({}))) {
    const auto other = next_event_time();
    if (other && *other < front.arrives) return {};
  }
  return front.frame.bytes();
}

void Engine::move_time(const ReleaseFrames& release) {
  if (!clock_.paused()) return;
  if (!next_frame().empty()) {
    if (release.count > 0) clock_.move_to(fabric_->link.front().arrives);
  } else if (const auto next = next_event_time()) {
    clock_.move_to(*next);
  }
}

std::optional<Instant> Engine::next_event_time() {
  const std::optional<Instant> fabric = fabric_->next_deadline();
  const std::optional<Instant> rdma_cm = rdma_cm_->next_deadline();
  if (!fabric || !rdma_cm) return fabric ? fabric : rdma_cm;
  return std::min(*fabric, *rdma_cm);
}

}  // namespace rocemu::engine
