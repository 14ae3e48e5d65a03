#include "emulator/daemon/run/virtual_time.h"

#include <poll.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;
using schedule::Step;

/// The time limit, in real time, for the remaining work when a run ends.
constexpr engine::Duration kMaxEnd = 5s;

}  // namespace

VirtualTime::VirtualTime(const Options& options, Turns& turns, Worker& worker,
                         EventLoop& control_loop, Clock& clock, const bool& is_held,
                         std::function<bool()> on_idle)
    : scheduler_(options),
      turns_(turns),
      worker_(worker),
      control_loop_(control_loop),
      clock_(clock),
      is_held_(is_held),
      on_idle_(std::move(on_idle)) {}

void VirtualTime::run(const bool& stopping) {
  worker_.engine_host().delivery().hold_outputs();
  scheduler_.restart();
  // The real time at which `stopping` became true. The daemon then stops at once if the command of
  // the run has not ended. If it has, the daemon first does the remaining work that belongs to the
  // run, for up to kMaxEnd.
  std::optional<engine::Instant> told_to_stop;
  const auto must_stop = [&] {
    if (!stopping) return false;
    if (!told_to_stop) told_to_stop = clock_.real_now();
    return !turns_.look_whether_command_ended() || clock_.real_now() - *told_to_stop > kMaxEnd;
  };
  bool was_in_round = false;
  while (!must_stop()) {
    const bool in_round = scheduler_.in_round();
    if (in_round) {
      if (!was_in_round) turns_.begin_round(scheduler_.is_quiet());
      turns_.wait_for_quiescence(Turns::Checks::kDue, must_stop);
    }
    was_in_round = in_round;
    const Step step = scheduler_.next(in_round ? facts_of_round() : facts());
    if (step.kind == Step::Kind::kEnd) return;
    take(step, must_stop);
  }
  handle_after_turns();
}

schedule::Facts VirtualTime::facts_of_round() {
  EngineHost& nic = worker_.engine_host();
  return {.now = clock_.now(),
          .threads = turns_.threads(),
          .timers = turns_.next_timer().value_or(schedule::kNever),
          .device = nic.next_deadline().value_or(schedule::kNever),
          .is_paused = nic.engine().paused(),
          .is_held = is_held_,
          .is_only_rule_due = nic.awaits_only_rules(),
          .has_frames_in_network = nic.engine().has_frames_in_network()};
}

schedule::Facts VirtualTime::facts() {
  EngineHost& nic = worker_.engine_host();
  schedule::Facts facts = facts_of_round();
  facts.inputs = nic.inputs();
  facts.memory_waits = worker_.memory().waits();
  facts.has_seen_programs = turns_.has_seen_programs();
  facts.has_frames_under_way = nic.engine().has_frames_under_way();
  facts.has_command_ended = turns_.has_command_ended();
  facts.real_now = clock_.real_now();
  return facts;
}

void VirtualTime::take(const Step& step, const Turns::MustStop& must_stop) {
  switch (step.kind) {
    case Step::Kind::kContinue:
    case Step::Kind::kEnd:
      return;
    case Step::Kind::kLookForNews:
      return scheduler_.heard_news(turns_.has_news());
    case Step::Kind::kGiveTurn:
      return scheduler_.turn_ended(turns_.give_turn(step, must_stop));
    case Step::Kind::kRunDevice: {
      const bool has_left_loop = turns_.check_postponed(must_stop);
      const bool has_worked = handle_after_turns();
      return scheduler_.device_ran(has_worked, turns_.take_changed() || has_left_loop);
    }
    case Step::Kind::kShow:
      worker_.engine_host().delivery().release_outputs();
      return;
    case Step::Kind::kServeControl:
      return serve_control();
    case Step::Kind::kActIdle:
      turns_.let_all_check();
      return scheduler_.acted_idle(on_idle_());
    case Step::Kind::kLookAtQps:
      return scheduler_.saw_qps(
          progress_of_qps(), !worker_.engine_host().engine().paused() && !worker_.memory().waits());
    case Step::Kind::kReportHang:
      return on_stuck_(scheduler_.seen_activity());
    case Step::Kind::kAdvance:
      return advance_to(step.until);
    case Step::Kind::kWait:
      if (step.time > engine::Duration(0)) turns_.wait_for_event(step.time, control_loop_.fd());
      worker_.sessions().begin_round();  // for polling threads that take no turns
      return;
  }
}

void VirtualTime::serve_control() {
  const uint32_t before = activity();
  bool has_answered = false;
  while (!turns_.has_command_ended() && control_loop_.run_first()) has_answered = true;
  scheduler_.control_served(has_answered, activity() != before);
}

/// Advances the clock, and lets the NIC and timers act. Programs have a turn only if they can see
/// what happened, which they cannot for some events of the NIC, such as retries.
void VirtualTime::advance_to(engine::Instant instant) {
  const uint64_t writes = worker_.memory().writes();
  clock_.advance_to(instant);
  const bool expired = turns_.set_time(clock_.now());
  const bool ticked = worker_.engine_host().tick_if_due(clock_.now());
  const bool released = worker_.engine_host().delivery().release_outputs();  // with the time
  const bool is_seen =
      released || expired || (turns_.is_memory_watched() && worker_.memory().writes() != writes);
  scheduler_.advanced(clock_.now(), is_seen, ticked || expired);
}

void VirtualTime::serve() {
  pollfd ready{worker_.loop().fd(), POLLIN, 0};
  while (poll(&ready, 1, 0) > 0) {
    worker_.sessions().pump_in_order();
    // Descriptors that were closed are handled before requests that were sent later.
    while (worker_.loop().run_first(EPOLLHUP)) reap();
    worker_.loop().run_first();
    worker_.engine_host().delivery().release_outputs();
  }
}

bool VirtualTime::reap() {
  const bool worked = worker_.sessions().reap(worker_.engine_host(), worker_.memory());
  return worker_.cm_sessions().reap(worker_.engine_host()) || worked;
}

bool VirtualTime::handle_after_turns() {
  bool worked = worker_.sessions().pump_in_order();
  worked |= reap();
  worked |= worker_.engine_host().tick_if_due(clock_.now());
  return worked;
}

uint32_t VirtualTime::activity() const {
  return scheduler_.activity(worker_.engine_host().inputs());
}

bool VirtualTime::end_stuck(uint32_t serial) {
  if (!scheduler_.is_stuck() || is_held_ || serial != scheduler_.seen_activity() ||
      serial != activity())
    return false;
  // The recording ends here, because the order in which the programs end now is random.
  scheduler_.end();
  worker_.engine_host().end_record();
  return true;
}

/// Returns numbers that change if a QP or an rdma_cm id makes progress. If they do not change,
/// retries may continue endlessly, for example for a receiver that is never ready (rnr_retry 7).
std::vector<uint32_t> VirtualTime::progress_of_qps() const {
  const engine::FabricSnapshot fabric = worker_.engine_host().engine().snapshot();
  std::vector<uint32_t> progress;
  for (const engine::DeviceSnapshot& device : fabric.devices) {
    for (const engine::QpSnapshot& qp : device.qps) {
      progress.insert(progress.end(),
                      {qp.number.value, static_cast<uint32_t>(qp.state), qp.unacked_psn,
                       qp.expected_psn, qp.msn, qp.send_posted, qp.recv_posted});
    }
  }
  for (const engine::RdmaIdSnapshot& id : fabric.rdma_ids) {
    progress.insert(progress.end(), {id.number, static_cast<uint32_t>(id.state)});
  }
  return progress;
}

}  // namespace rocemu::daemon
