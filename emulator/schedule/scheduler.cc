#include "emulator/schedule/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rocemu::schedule {
namespace {

using namespace std::chrono_literals;

/// The number of rounds without an event in which threads may continue before they count as idle. A
/// thread may first empty its CQs, and only then do something else.
constexpr uint32_t kPollersTurn = 3;
/// The shortest and the longest wait for an external event, in real time.
constexpr Duration kMinWait = 1ms, kMaxWait = 20ms;
/// The number of rounds in which polling threads continue without a pause while the clock stands
/// still.
constexpr uint32_t kManyPolls = 2000;
/// After kBusyTurns turns with progress at one instant, the clock advances to the next due event,
/// but at most by kBusyTime, which is about the time that the turns would have taken. Otherwise a
/// thread that never waits would keep the NIC, sleepers and polling threads from their events.
constexpr uint32_t kBusyTurns = 1000;
constexpr Duration kBusyTime = 1ms;

bool reads_clock(const Thread& thread) {
  return thread.polling && thread.polling->reads_clock;
}

PriorityOrder::Due due_of(const Facts& facts) {
  return {
      .now = facts.now, .device = facts.device, .timers = facts.timers, .threads = facts.threads};
}

}  // namespace

Step Scheduler::next(const Facts& facts) {
  switch (phase_) {
    case Phase::kBegin:
      if (!is_seen_) return {Step::Kind::kLookForNews};
      if (is_busy(facts)) return move_time_of_busy(facts);
      begin_round();
      return give_turn(facts);
    case Phase::kRound:
      return give_turn(facts);
    case Phase::kDevice:
      return {Step::Kind::kRunDevice};
    case Phase::kProgressed:
      idle_rounds_ = 0;
      idle_since_ = facts.now;
      is_quiet_ = pollers_wait_ = is_for_askers_ = false;
      waits_of_pollers_ = 0;
      begin(true);
      return {Step::Kind::kShow};
    case Phase::kControl:
      return serve_control(facts);
    case Phase::kIdle:
      return when_idle(facts);
    case Phase::kPaused:
      return {Step::Kind::kActIdle};
    case Phase::kMove:
      return move_time(facts);
    case Phase::kMoved:
      return after_move(facts);
    case Phase::kSeesQps:
      return report_repeats(facts);
    case Phase::kLooksIdle:
      return {Step::Kind::kActIdle};
    case Phase::kAllWait:
      return report_idle(facts);
    case Phase::kWaits:
      return wait();
  }
  return {};
}

void Scheduler::restart() {
  begin(true);
}

void Scheduler::begin(bool is_seen) {
  phase_ = Phase::kBegin;
  is_seen_ = is_seen || priorities_;
}

void Scheduler::begin_round() {
  phase_ = Phase::kRound;
  round_ = {};
  position_ = {};
}

/// Notes that an event happened that threads may see.
void Scheduler::happened() {
  is_quiet_ = false;
  looked_.clear();
  is_nic_done_ = false;
  if (priorities_) priorities_->happened();
}

void Scheduler::heard_news(bool any) {
  if (any) {
    happened();
    return begin_round();
  }
  phase_ = Phase::kDevice;
  round_.progressed = false;
}

/// Returns whether the clock stands still; polling threads then have turns without waiting for it.
bool Scheduler::stands_still(const Facts& facts) const {
  return facts.is_paused || facts.is_held || is_ending_ || hang_.repeats();
}

/// Returns when a thread may have its turn. Threads that neither poll nor are preempted may check
/// their condition in each round.
Instant Scheduler::ready_at(const Thread& thread, const Facts& facts) const {
  if (thread.is_blocked) return kNever;
  if (stands_still(facts)) return Instant::min();
  Instant ready = thread.polling ? ready_after_polls(*thread.polling, idle_since_) : Instant::min();
  if (thread.polling && options_.polls_are_exact)
    ready = std::min(ready, next_poll_after(*thread.polling, idle_since_));
  return priorities_ ? std::max(ready, priorities_->held_until(thread, due_of(facts))) : ready;
}

/// Returns the earliest time at which a thread continues or a timer expires.
Instant Scheduler::next_of_programs(const Facts& facts) const {
  Instant next = facts.timers;
  for (const Thread& thread : facts.threads) {
    const Instant ready = ready_at(thread, facts);
    next = std::min(next, ready > facts.now ? ready : thread.deadline);
    if (!priorities_) continue;
    // The clock must not pass the deadline of a thread, even if the thread is held back because it
    // has a low priority.
    if (thread.deadline > facts.now) next = std::min(next, thread.deadline);
    if (!thread.polling || stands_still(facts)) continue;
    const Instant polled = ready_after_polls(*thread.polling, idle_since_);
    if (polled > facts.now) next = std::min(next, polled);
  }
  return next;
}

/// Returns the earliest time at which a thread's wait or preemption ends, or a timer expires.
Instant Scheduler::next_of_sleepers(const Facts& facts) const {
  Instant next = facts.timers;
  for (const Thread& thread : facts.threads) {
    next = std::min(next, thread.deadline);
    if (!priorities_ || !priorities_->may_look(thread)) continue;
    const Instant until = priorities_->held_until(thread, due_of(facts));
    if (until > facts.now) next = std::min(next, until);
  }
  return next;
}

PollGrant Scheduler::grant_to(const Thread& thread, const Facts& facts) const {
  if (stands_still(facts)) return {};
  if (priorities_ && priorities_->could_another_run(thread, facts.threads)) return {};
  // The NIC has not seen yet what a thread of this round did, so its next event is unknown.
  Idleness idleness{.is_quiet = is_quiet_ || !round_.progressed,
                    .now = facts.now,
                    .next = next_of_sleepers(facts),
                    .is_alone = true};
  // Threads that have had no turn since the latest event may act when they are ready.
  for (const Thread& other : facts.threads) {
    if (is_quiet_ || other.serial == thread.serial || looked_.contains(other.serial)) continue;
    const Instant ready = ready_at(other, facts);
    if (ready <= facts.now) idleness.is_quiet = false;
    idleness.next = std::min(idleness.next, ready);
  }
  for (const Thread& other : facts.threads) {
    if (!other.polling) continue;
    idleness.reads_clock |= other.polling->reads_clock;
    idleness.since = std::max(idleness.since, other.polling->since);
    if (other.serial != thread.serial) idleness.is_alone = false;
  }
  const Polling polling = thread.polling.value_or(Polling{});
  if (facts.device != kNever) {
    const bool is_crowd = unseen_ >= kPollConstants.crowd;
    const Duration late = is_crowd ? lead_of(idleness, polling) : Duration{};
    idleness.next = std::min(idleness.next, std::max(facts.device, facts.now + late));
  }
  return grant_polls(idleness, polling);
}

void Scheduler::turn_ended(const Turn& turn) {
  round_ |= turn;
  if (turn.progressed) {
    if (!turn.is_preempted) ++turns_;
    happened();
    looked_.insert(position_.serial);
  }
  if (!priorities_) return;
  if (!turn.progressed && turn.calls != 0) priorities_->happened();
  if (!priorities_->turn_ended(position_.serial, turn)) turns_ = kBusyTurns;
}

Step Scheduler::give_turn_by_priority(const Facts& facts) {
  // A new thread counts as an event, no matter how many rounds passed before it started.
  if (priorities_->see(facts.threads, facts.now)) happened();
  const Thread* const next = priorities_->first(facts.threads, [&](const Thread& thread) {
    return priorities_->may_look(thread) && ready_at(thread, facts) <= facts.now;
  });
  waits_for_nic_ = next != nullptr && !is_nic_done_ && priorities_->is_behind_nic(*next);
  if (next == nullptr || waits_for_nic_) {
    phase_ = Phase::kDevice;
    return {Step::Kind::kRunDevice};
  }
  position_.serial = next->serial;
  looked_.insert(next->serial);
  return {.kind = Step::Kind::kGiveTurn,
          .slot = next->slot,
          .polls = grant_to(*next, facts),
          .calls = priorities_->calls_for(*next, facts.threads, is_quiet_),
          .stopped_after = priorities_->stopped_after(*next)};
}

Step Scheduler::give_turn(const Facts& facts) {
  if (priorities_) return give_turn_by_priority(facts);
  const auto is_ready = [&](const Thread& thread) { return ready_at(thread, facts) <= facts.now; };
  const Thread* const next = TurnOrder::next_after(position_, facts.threads, is_ready);
  if (next == nullptr) {
    phase_ = Phase::kDevice;
    return {Step::Kind::kRunDevice};
  }
  position_ = TurnOrder::position_of(*next);
  looked_.insert(next->serial);
  return {.kind = Step::Kind::kGiveTurn, .slot = next->slot, .polls = grant_to(*next, facts)};
}

void Scheduler::device_ran(bool has_worked, bool have_changed) {
  if (has_worked || have_changed) happened();
  round_.progressed |= have_changed;
  if (round_.progressed) ++rounds_;
  phase_ = has_worked || round_.progressed ? Phase::kProgressed : Phase::kControl;
  if (!priorities_) return;
  if (has_worked) priorities_->nic_acted();
  is_nic_done_ = !has_worked;
  if (phase_ == Phase::kControl && std::exchange(waits_for_nic_, false)) phase_ = Phase::kRound;
}

/// Serves requests on the control socket. The time at which a request arrives must not change what
/// programs do, unless that is its purpose. Therefore no request is served once the command has
/// ended. Threads that sent a request have a turn before time moves. If none of them continues, the
/// request came from outside the run. There may be endlessly many such requests, so the next one
/// waits until time has moved.
Step Scheduler::serve_control(const Facts& facts) {
  if (!facts.has_command_ended && !std::exchange(is_for_askers_, false))
    return {Step::Kind::kServeControl};
  return when_idle(facts);
}

void Scheduler::control_served(bool has_answered, bool has_acted) {
  if (has_acted) {
    happened();
    phase_ = Phase::kProgressed;
  } else if (has_answered) {
    is_for_askers_ = true;
    if (priorities_) priorities_->happened();
    begin(true);
  } else {
    phase_ = Phase::kIdle;
  }
}

/// Ends the run if its command has ended and no frame is in flight; all programs wait at this
/// point. Later events, such as retries and timers, do not belong to the run.
Step Scheduler::when_idle(const Facts& facts) {
  if (facts.has_command_ended && (is_ending_ || !facts.has_frames_under_way))
    return {Step::Kind::kEnd};
  if (!facts.is_paused) return move_time(facts);
  // While the NIC is paused, programs see each frame before the next frame arrives or time moves.
  if (idle_rounds_++ < kPollersTurn) {
    if (priorities_) priorities_->happened();
    begin(true);
    return {Step::Kind::kContinue};
  }
  phase_ = Phase::kPaused;
  return {Step::Kind::kActIdle};
}

void Scheduler::acted_idle(bool has_acted) {
  if (has_acted) {
    happened();
    phase_ = Phase::kProgressed;
  } else {
    phase_ = phase_ == Phase::kPaused ? Phase::kMove : Phase::kAllWait;
  }
}

/// Returns whether only polling threads would continue, and no event is due that they could find.
bool Scheduler::has_nothing_but_pollers(const Facts& facts) const {
  return next_of_sleepers_ == kNever && facts.device == kNever &&
         std::ranges::none_of(facts.threads, reads_clock);
}

/// Returns whether the run must pause before the polling threads continue. During the pause,
/// `rocemu` can examine these threads, and other processes get the processor.
bool Scheduler::lets_pollers_wait(const Facts& facts) {
  if (facts.now - idle_since_ < kPollConstants.busy * kPollConstants.poll) return false;
  pollers_wait_ = !pollers_wait_;
  return pollers_wait_;
}

Step Scheduler::move_time(const Facts& facts) {
  is_quiet_ = std::ranges::all_of(facts.threads, [this](const Thread& thread) {
    return !thread.polling || looked_.contains(thread.serial);
  });
  any_polls_ = std::ranges::any_of(facts.threads,
                                   [](const Thread& thread) { return thread.polling.has_value(); });
  next_of_programs_ = next_of_programs(facts);
  next_of_sleepers_ = next_of_sleepers(facts);
  // The clock does not move to the time of a scenario's rule before the first program has started.
  const bool is_early = facts.is_only_rule_due && !facts.has_seen_programs;
  const Instant device = is_early ? kNever : facts.device;
  const Instant next = std::min(next_of_programs_, device);
  const auto must_stand_still = [&] {
    hang_.see(activity(facts.inputs));
    return is_ending_ || hang_.awaits_verdict(facts.real_now);
  };
  if (next != kNever && !facts.is_held && !round_.waits_for_room && !must_stand_still()) {
    if (has_nothing_but_pollers(facts) && lets_pollers_wait(facts)) {
      phase_ = Phase::kLooksIdle;
      return {Step::Kind::kActIdle};
    }
    was_nic_due_ = device <= next;
    moved_frames_ = facts.has_frames_in_network;
    return {.kind = Step::Kind::kAdvance, .until = next};
  }
  if (idle_rounds_++ < kPollersTurn) return wait();
  phase_ = Phase::kLooksIdle;
  return {Step::Kind::kActIdle};
}

bool Scheduler::is_busy(const Facts& facts) const {
  return turns_ >= kBusyTurns && !stands_still(facts) && !round_.waits_for_room &&
         (next_of_programs(facts) != kNever || (facts.device != kNever && !facts.is_only_rule_due));
}

/// Moves time although threads could continue at this instant; these threads have their next turns
/// immediately afterwards. Polling threads poll only when something is due: one poll for each 50 ns
/// would take thousands of turns for each microsecond.
Step Scheduler::move_time_of_busy(const Facts& facts) {
  next_of_sleepers_ = next_of_sleepers(facts);
  Instant due = std::min(next_of_sleepers_, facts.device);
  if (due == kNever) due = next_of_programs(facts);
  const Instant until = std::min(due, facts.now + kBusyTime);
  next_of_programs_ = until;
  was_nic_due_ = facts.device <= until;
  moved_frames_ = facts.has_frames_in_network;
  return {.kind = Step::Kind::kAdvance, .until = until};
}

void Scheduler::advanced(Instant now, bool is_seen, bool has_happened) {
  if (has_happened) idle_rounds_ = 0;
  turns_ = 0;
  is_nic_done_ = false;
  if (priorities_) {
    priorities_->time_moved();
    if (was_nic_due_ && has_happened) priorities_->nic_acted();
  }
  unseen_ = is_seen ? 0 : unseen_ + (was_nic_due_ ? 1 : 0);
  if (is_seen) idle_since_ = now;
  if (is_seen || next_of_sleepers_ <= now) happened();
  is_seen_ = is_seen || next_of_programs_ <= now || priorities_;
  phase_ = Phase::kMoved;
}

Step Scheduler::after_move(const Facts& facts) {
  hang_.see(activity(facts.inputs));
  if (!was_nic_due_) return report_pollers(facts);
  hang_.jumped(moved_frames_);
  if (!options_.reports_hangs || next_of_sleepers(facts) != kNever) {
    hang_.repeats(false);
    begin(is_seen_);
    return {Step::Kind::kContinue};
  }
  if (hang_.wants_progress()) {
    phase_ = Phase::kSeesQps;
    return {Step::Kind::kLookAtQps};
  }
  hang_.repeats(hang_.is_stuck());
  return report_repeats(facts);
}

/// Reports a hang if threads continue to poll for something that never happens.
Step Scheduler::report_pollers(const Facts& facts) {
  begin(is_seen_);
  const bool is_long = facts.now - idle_since_ >= kPollConstants.busy * kPollConstants.poll;
  if (options_.reports_hangs && is_long && has_nothing_but_pollers(facts) && !facts.memory_waits &&
      hang_.report(facts.real_now))
    return {Step::Kind::kReportHang};
  return {Step::Kind::kContinue};
}

void Scheduler::saw_qps(std::vector<uint32_t> progress, bool may_repeat) {
  hang_.repeats(hang_.sees_progress(std::move(progress), may_repeat));
}

Step Scheduler::report_repeats(const Facts& facts) {
  begin(is_seen_);
  if (hang_.repeats() && hang_.report(facts.real_now)) return {Step::Kind::kReportHang};
  return {Step::Kind::kContinue};
}

/// Reports a hang if nothing can happen any more. There has been nothing to do for some rounds.
Step Scheduler::report_idle(const Facts& facts) {
  phase_ = Phase::kWaits;
  hang_.see(activity(facts.inputs));
  const bool may_go_on =
      !facts.has_seen_programs || facts.is_held || facts.is_paused || facts.memory_waits;
  if (options_.reports_hangs && !may_go_on && hang_.report(facts.real_now))
    return {Step::Kind::kReportHang};
  return wait();
}

/// Waits for an external event, because nothing happens. The scheduler checks for such events less
/// and less often, at the latest from the report of a hang: the search for it fails if threads have
/// turns meanwhile. Polling threads continue without a wait at first.
Step Scheduler::wait() {
  begin(true);
  if (priorities_) priorities_->happened();
  Step step{Step::Kind::kWait};
  uint32_t doublings = idle_rounds_ <= kPollersTurn ? 0 : idle_rounds_;
  if (pollers_wait_) {
    doublings = waits_of_pollers_++;
  } else if (round_.polls) {
    if (idle_rounds_ < kManyPolls) return step;
    doublings = idle_rounds_ - kManyPolls;
  }
  doublings = std::min(doublings, 5U);
  step.time = std::min<Duration>(kMinWait * (1 << doublings), kMaxWait);
  return step;
}

}  // namespace rocemu::schedule
