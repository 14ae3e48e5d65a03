#include "emulator/schedule/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rocemu::schedule {
namespace {

using namespace std::chrono_literals;

/// So many rounds in which nothing happened: a thread that empties its CQs and then goes on to do
/// something else has done it by then.
constexpr uint32_t kPollersTurn = 3;
/// How long to wait for something from outside, of real time.
constexpr Duration kMinWait = 1ms, kMaxWait = 20ms;
/// For so many rounds nothing waits for threads that poll: they go on by themselves.
constexpr uint32_t kManyPolls = 2000;

}  // namespace

Step Scheduler::next(const Facts& facts) {
  switch (phase_) {
    case Phase::kBegin:
      if (!is_seen_) return {Step::Kind::kLookForNews};
      heard_news(true);
      return give_turn(facts);
    case Phase::kRound:
      return give_turn(facts);
    case Phase::kDevice:
      return {Step::Kind::kRunDevice};
    case Phase::kProgressed:
      idle_rounds_ = 0;
      idle_since_ = facts.now;
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
  is_seen_ = is_seen;
}

void Scheduler::heard_news(bool any) {
  if (any) {
    phase_ = Phase::kRound;
    round_ = {};
    place_ = {};
  } else {
    phase_ = Phase::kDevice;
    round_.progressed = false;
  }
  is_seen_ = true;
}

Step Scheduler::give_turn(const Facts& facts) {
  const Thread* const next = order_.next_after(place_, facts.threads, facts.now);
  if (next == nullptr) {
    phase_ = Phase::kDevice;
    return {Step::Kind::kRunDevice};
  }
  place_ = order_.place_of(*next, facts.now);
  return {Step::Kind::kGiveTurn, next->slot};
}

void Scheduler::device_ran(bool has_worked, bool have_changed) {
  round_.progressed |= have_changed;
  if (round_.progressed) ++rounds_;
  phase_ = has_worked || round_.progressed ? Phase::kProgressed : Phase::kControl;
}

/// Requests on the control socket, whenever they come, change nothing of what programs do, unless
/// that is what they are for. Nor, once the command has ended, before the run is over.
Step Scheduler::serve_control(const Facts& facts) {
  if (options_.lockstep && !facts.has_command_ended) return {Step::Kind::kServeControl};
  return when_idle(facts);
}

void Scheduler::control_served(bool has_acted) {
  phase_ = has_acted ? Phase::kProgressed : Phase::kIdle;
}

/// A run ends when the command that it is for has ended, all programs wait, and no frame is under
/// way: what would come later, such as retries and timers, is not of the run.
Step Scheduler::when_idle(const Facts& facts) {
  if (facts.has_command_ended && (is_ending_ || !facts.has_frames_under_way))
    return {Step::Kind::kEnd};
  if (!facts.is_paused) return move_time(facts);
  // Frame by frame, programs see each before the next, or before time goes on.
  if (idle_rounds_++ < kPollersTurn) {
    begin(true);
    return {Step::Kind::kContinue};
  }
  phase_ = Phase::kPaused;
  return {Step::Kind::kActIdle};
}

void Scheduler::acted_idle(bool has_acted) {
  if (has_acted) {
    phase_ = Phase::kProgressed;
  } else {
    phase_ = phase_ == Phase::kPaused ? Phase::kMove : Phase::kAllWait;
  }
}

Instant Scheduler::next_of_programs(const Facts& facts) {
  Instant next = facts.timers;
  for (const Thread& thread : facts.threads) next = std::min(next, thread.deadline);
  return next;
}

Instant Scheduler::next_instant(const Facts& facts) const {
  const Instant next = std::min(next_of_programs(facts), facts.device);
  if (!round_.reads_clock) return next;
  // A thread that polls and reads a clock waits for a time that only it knows: time goes on in
  // steps, each an eighth of how long it has polled.
  const Duration step = std::max<Duration>((facts.now - idle_since_) / 8, 1us);
  return std::min(next, facts.now + step);
}

Step Scheduler::move_time(const Facts& facts) {
  const Instant next = next_instant(facts);
  const auto must_stand_still = [&] {
    hang_.see(activity(facts.inputs));
    return is_ending_ || (options_.lockstep && hang_.awaits_verdict(facts.real_now));
  };
  if (next != kNever && !facts.is_held && !round_.waits_for_room && !must_stand_still()) {
    next_of_programs_ = next_of_programs(facts);
    return {.kind = Step::Kind::kAdvance, .until = next};
  }
  if (idle_rounds_++ < kPollersTurn) return wait();
  phase_ = Phase::kLooksIdle;
  return {Step::Kind::kActIdle};
}

void Scheduler::advanced(Instant now, bool is_seen, bool has_happened) {
  if (has_happened) {
    idle_rounds_ = 0;
    idle_since_ = now;
  }
  is_seen_ = is_seen || next_of_programs_ <= now || round_.polls_memory || round_.reads_clock;
  phase_ = Phase::kMoved;
}

Step Scheduler::after_move(const Facts& facts) {
  hang_.see(activity(facts.inputs));
  hang_.jumped();
  if (!options_.reports_hangs || next_of_programs(facts) != kNever) {
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

void Scheduler::saw_qps(std::vector<uint32_t> progress, bool may_repeat) {
  hang_.repeats(hang_.sees_progress(std::move(progress), may_repeat));
}

Step Scheduler::report_repeats(const Facts& facts) {
  begin(is_seen_);
  if (hang_.repeats() && hang_.report(facts.real_now)) return {Step::Kind::kReportHang};
  return {Step::Kind::kContinue};
}

/// For some rounds there has been nothing to do. If nothing can come any more, that is reported.
Step Scheduler::report_idle(const Facts& facts) {
  phase_ = Phase::kWaits;
  hang_.see(activity(facts.inputs));
  const bool may_go_on =
      !facts.has_seen_programs || facts.is_held || facts.is_paused || facts.memory_waits;
  if (options_.reports_hangs && !may_go_on && hang_.report(facts.real_now))
    return {Step::Kind::kReportHang};
  return wait();
}

/// When nothing comes, programs may be woken by something outside: looked for less and less often.
/// Those that poll go on by themselves.
Step Scheduler::wait() {
  begin(true);
  Step step{Step::Kind::kWait};
  if (round_.polls && idle_rounds_ < kManyPolls) return step;
  const uint32_t doublings = std::min(round_.polls ? idle_rounds_ - kManyPolls : idle_rounds_, 5U);
  step.time = std::min<Duration>(kMinWait * (1 << doublings), kMaxWait);
  return step;
}

}  // namespace rocemu::schedule
