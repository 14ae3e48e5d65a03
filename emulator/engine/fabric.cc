#include "emulator/engine/fabric.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "emulator/engine/transport/completer.h"
#include "emulator/engine/transport/congestion.h"
#include "emulator/engine/transport/failure.h"
#include "emulator/engine/transport/requester.h"
#include "emulator/engine/transport/response_queue.h"

namespace rocemu::engine {
namespace {

/// The maximum number of frames that one step moves. It is small, so that the caller soon returns
/// to its other work.
constexpr uint32_t kFramesPerStep = 256;
/// More frames than those that a quantum sends and the step then receives
constexpr uint32_t kFramesOfShortQuantum = 4 * ShortRequests::kMax;
/// The maximum number of delayed frames. When it is reached, no QP sends more, since each frame
/// takes 4 KiB of memory.
constexpr size_t kMaxDelayedFrames = 16384;

std::vector<std::string> names_of(const std::vector<DeviceConfig>& devices) {
  std::vector<std::string> names;
  for (const DeviceConfig& device : devices) names.push_back(device.name);
  return names;
}

}  // namespace

Fabric::Fabric(FabricConfig config, HostMemory& program_memory)
    : config_(std::move(config)),
      objects(config_),
      crossing(config_, frames_, link, step),
      network(config_, link, crossing, step),
      event_delivery(step),
      adversary(adversarial::Adversary::make(config_, program_memory, objects, step)),
      faults(objects, frames_, network, link, crossing, completions, event_delivery, step,
             config_.seed, names_of(config_.devices)),
      completions(objects, adversary ? adversary->memory() : program_memory, faults.events, step),
      scheduler(objects.qps),
      transmitter(config_, objects, frames_, faults.frames, step),
      transport(config_, objects, adversary ? adversary->memory() : program_memory, step, scheduler,
                transmitter, faults, link, crossing, arrivals, run_, short_requests_,
                adversary.get()),
      environment(step, config_.link_latency, objects.devices, transmitter),
      connections(environment, config_.seed),
      admission(transport, connections, arrivals, frames_, step),
      commands{objects, transport.memory(), completions, transport, step},
      leaving(commands) {
  completions.set_hold(adversary.get());
  event_delivery.set_hold(adversary.get());
}

void Fabric::begin_step(Instant now, Outputs& outputs) {
  step.begin(now, outputs);
  if (crossing.is_there()) [[unlikely]]
    go_on_with_network();
  faults.release_due();
  completions.release_events();
  if (adversary) [[unlikely]]
    go_on_with_adversary();
}

void Fabric::go_on_with_adversary() {
  adversary->release_due(completions, event_delivery);
  for (const QpNumber number : adversary->take_woken()) {
    if (QueuePair* qp = objects.qps.find(number)) scheduler.schedule(*qp);
  }
}

void Fabric::go_on_with_network() {
  crossing.advance();
  if (faults.network.act_due()) [[unlikely]]
    crossing.advance();
  for (const QpNumber number : crossing.take_resumed()) {
    if (QueuePair* qp = objects.qps.find(number)) scheduler.schedule(*qp);
  }
}

void Fabric::deliver_delayed(ClientId client) {
  if (adversary) adversary->deliver_delayed(client, completions, event_delivery);
}

void Fabric::begin_expiry() {
  expiring_ = next_timeout() <= step.now();
}

/// Returns whether timers may expire now. IBTA vol 1, 9.7.6.1.3 leaves open how late a timeout is
/// detected. If the engine was not stepped for a while, the answers for which expired timers wait
/// may be in flight, or a responder may not have had a quantum to send them. Therefore the frames
/// in flight arrive first, and each QP that has a quantum uses it.
bool Fabric::may_expire() {
  if (!may_produce_frames()) return true;
  if (!last_quantum_before_expiry_) last_quantum_before_expiry_ = scheduler.quanta_scheduled();
  return scheduler.quanta_taken() >= *last_quantum_before_expiry_;
}

void Fabric::run() {
  fail_qps();
  take_arrivals();  // the frames that follow the removal of a device
  short_requests_.clear();
  const bool runs = makes_runs();
  for (uint32_t moved = 0; moved < kFramesPerStep && !faults.devices.has_removals();) {
    if (!short_requests_.empty()) {
      admission.arrive(short_requests_);
      ++moved;
      fail_qps();
      continue;
    }
    const bool arrives = link.has_arrived(step.now());
    if (!arrives && expiring_ && may_expire()) [[unlikely]] {
      expire_timers();
    } else if (arrives) {
      if (link.is_held()) break;
      const InFlight in_flight = link.take();
      const bool is_placed = in_flight.frame.is_placed();
      if (run_.empty() && (is_placed || (runs && !link.empty()))) {
        run_.begin(in_flight, link, step.now(), kFramesPerStep - moved);
      }
      admission.arrive(in_flight);
      run_.advance();
      ++moved;
    } else if (may_produce_frames()) {
      QueuePair* qp = scheduler.take_quantum();
      if (qp != nullptr && congestion::may_transmit(transport, *qp)) {
        short_requests_.set_allowed(kFramesPerStep - moved >= kFramesOfShortQuantum);
        moved += response_queue::transmit(transport, *qp);
        moved += requester::transmit(transport, *qp);
      }
    } else if (const auto next = crossing.next_event(); next && *next <= step.now()) {
      go_on_with_network();
    } else {
      break;
    }
    fail_qps();
  }
  run_.clear();  // another step does not continue the rest
}

/// Returns whether the payloads of several packets may be written to memory at once. A rule for
/// requests may prevent the execution of a packet, whose payload must then not reach memory.
bool Fabric::makes_runs() const {
  return !link.paused() && !faults.watches(faults::Where::kRequest);
}

void Fabric::receive(const ReceivedFrames& input) {
  admission.receive(input);
  take_arrivals();
}

/// Handles all frames of the burst, even if there are more than a step normally moves: the caller
/// owns their bytes, and may reuse them after the step.
void Fabric::take_arrivals() {
  if (arrivals.empty()) return;
  const bool runs = makes_runs();
  while (!arrivals.empty()) {
    if (faults.devices.has_removals()) return;  // continues after the removal
    if (runs && run_.empty()) run_.begin(arrivals.waiting());
    admission.arrive(arrivals.take());
    run_.advance();
    fail_qps();
  }
  arrivals.clear();
  run_.clear();
}

void Fabric::fail_qps() {
  const bool any = completions.has_overrun() || faults.made_up_events.has_failing_qp();
  if (!any) [[likely]]
    return;
  while (const auto overrun = completions.take_overrun()) {
    const CompletionQueue* cq = objects.cqs.find(*overrun);
    if (cq != nullptr) fail_users(transport, *cq);
  }
  while (const auto failing = faults.made_up_events.take_failing_qp()) {
    QueuePair* qp = objects.qps.find(*failing);
    if (qp == nullptr || qp->state == abi::QpState::kReset || qp->state == abi::QpState::kErr) {
      continue;
    }
    enter_error(transport, *qp);
  }
}

bool Fabric::may_produce_frames() const {
  return scheduler.has_quanta() && faults.frames.delayed() < kMaxDelayedFrames;
}

std::optional<Instant> Fabric::next_deadline() {
  const std::optional<Instant> work = next_deadline_of_work();
  const std::optional<Instant> change = faults.network.next_deadline();
  if (!work || !change) return work ? work : change;
  return std::min(*work, *change);
}

std::optional<Instant> Fabric::next_deadline_of_work() {
  if (!leaving.empty()) return step.now();
  const bool held = link.is_held();
  const bool arrives_now = link.has_arrived(step.now());
  if (arrives_now ? !held : may_produce_frames()) return step.now();
  std::optional<Instant> first;
  if (const auto timer = scheduler.next_timer()) first = timer->at;
  if (!link.empty() && !held && (!first || link.front().arrives < *first)) {
    first = std::max(step.now(), link.front().arrives);
  }
  for (const auto& other :
       {connections.next_deadline(), completions.next_event(), faults.next_deadline(),
        crossing.next_event(), adversary ? adversary->next_deadline() : std::nullopt}) {
    if (other && (!first || *other < *first)) first = other;
  }
  return first;
}

bool Fabric::is_idle() const {
  if (!leaving.empty() || has_frames_under_way() || scheduler.has_quanta() ||
      faults.next_deadline() || faults.network.next_deadline() || completions.has_events() ||
      connections.awaits_answer() || (adversary && !adversary->is_idle())) {
    return false;
  }
  bool idle = true;
  objects.qps.for_each([&](const QueuePair& qp) {
    for (const Timer& timer : qp.timers) idle = idle && !timer.deadline;
  });
  return idle;
}

Instant Fabric::next_timeout() {
  const auto timer = scheduler.next_timer();
  return std::min(timer ? timer->at : Instant::max(),
                  connections.next_deadline().value_or(Instant::max()));
}

void Fabric::expire_timers() {
  expiring_ = false;
  last_quantum_before_expiry_.reset();
  for (auto entry = scheduler.next_timer(); entry && entry->at <= step.now();
       entry = scheduler.next_timer()) {
    completer::on_timer(transport, scheduler.expire(*entry), entry->kind);
  }
  connections.expire_timers();
}

void Fabric::go_on_with_memory() {
  for (const QpNumber number : scheduler.take_waiting_for_memory()) {
    QueuePair* qp = objects.qps.find(number);
    if (qp == nullptr) continue;
    completer::on_memory_ready(transport, *qp);
    scheduler.schedule(*qp);
  }
}

// Follows ibv_get_async_event(3), IBV_EVENT_DEVICE_FATAL: "CA is in FATAL state". As when Linux
// removes a driver, the objects are destroyed at once and nothing completes any more. The clients
// keep their connections to the device, but every command fails with EIO.
void Fabric::remove_device(DeviceIndex index) {
  Device& gone = objects.devices[index];
  if (gone.removed) return;
  gone.removed = true;
  transport.memory().end_copies();
  gone.port_state = abi::PortState::kDown;
  connections.forget(index);
  objects.clients.for_each_of(index, [&](ClientId client) {
    faults.events.raise(client, abi::EventType::kDeviceFatal, 0);
    step.emit(DeviceLost{client});
  });
  leaving.remove_device(index);
}

}  // namespace rocemu::engine
