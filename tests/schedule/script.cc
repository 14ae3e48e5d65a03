#include "tests/schedule/script.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace rocemu::test {
namespace {

constexpr uint32_t kFirstSlot = 100;  // different from any serial number
constexpr int kManySteps = 100'000;
constexpr uint32_t kManyTurns = 1'000'000;

std::string text(Instant instant) {
  return std::to_string(instant.time_since_epoch().count()) + " ns";
}

const char* name_of(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::kContinue:
      return "goes on";
    case Step::Kind::kLookForNews:
      return "looks for news";
    case Step::Kind::kGiveTurn:
      return "gives a turn to";
    case Step::Kind::kRunDevice:
      return "runs the NIC";
    case Step::Kind::kShow:
      return "shows what the NIC did";
    case Step::Kind::kServeControl:
      return "serves the control socket";
    case Step::Kind::kActIdle:
      return "does what there is to do when idle";
    case Step::Kind::kLookAtQps:
      return "looks at QPs";
    case Step::Kind::kReportHang:
      return "reports a hang";
    case Step::Kind::kAdvance:
      return "advances to";
    case Step::Kind::kWait:
      return "waits outside";
    case Step::Kind::kEnd:
      return "ends the run";
  }
  return "";
}

}  // namespace

Script& Script::starts(uint64_t thread) {
  threads_[thread] = {
      .thread = {.slot = kFirstSlot - static_cast<uint32_t>(thread), .serial = thread}};
  have_changed_ = true;
  return *this;
}

Script& Script::nic_is_due(Duration time, bool is_seen) {
  due_.push_back({Instant(time), is_seen});
  return *this;
}

Script& Script::timer_is_due(Duration time) {
  timers_.push_back(Instant(time));
  return *this;
}

Script& Script::with(const std::function<void(Facts&)>& change) {
  change(facts_);
  return *this;
}

Script& Script::qps_stand_still() {
  stand_still_ = true;
  return *this;
}

Script& Script::ends_turn(const Turn& turn) {
  current().has_turn = false;
  current().had_turn = true;
  current().polls = turn.polls;
  current().is_preempted = false;
  if (!turn.polls) current().thread.polling.reset();
  Turn counted = turn;
  counted.calls += std::exchange(calls_, 0);
  scheduler_.turn_ended(counted);
  return *this;
}

Script& Script::is_preempted() {
  EXPECT_NE(granted_calls_, 0U);
  current().thread.deadline = schedule::kNever;
  ends_turn({.progressed = true, .is_preempted = true, .calls = granted_calls_});
  current().is_preempted = true;
  return *this;
}

Script& Script::waits() {
  current().thread.deadline = schedule::kNever;
  return ends_turn({.progressed = true});
}

Script& Script::sleeps_until(Duration time) {
  current().thread.deadline = Instant(time);
  return ends_turn({.progressed = true});
}

Script& Script::looks_again() {
  return ends_turn({});
}

Script& Script::ends() {
  ends_turn({.progressed = true});
  threads_.erase(current_);
  return *this;
}

Script& Script::polls(uint32_t times) {
  std::optional<schedule::Polling>& polling = current().thread.polling;
  if (!polling) polling = schedule::Polling{.since = facts_.now};
  polling->polled_at = facts_.now;
  polling->polls = times;
  polling->streak += times;
  polling->ready_at = facts_.now + times * granted_.each;
  return ends_turn({.progressed = std::exchange(found_, false), .polls = true});
}

Script& Script::calls(uint32_t count) {
  EXPECT_LT(count, granted_calls_);
  calls_ = count;
  return *this;
}

Script& Script::asks() {
  is_asked_ = true;
  return *this;
}

Script& Script::is_asked_without_end() {
  is_asked_outside_ = true;
  return *this;
}

Script& Script::finds_something() {
  current().thread.polling.reset();
  granted_ = {};
  found_ = true;
  return *this;
}

Script& Script::polls_on() {
  // two polls, because the second one shows that nothing has changed
  return polls(std::max(granted_.polls, 2U));
}

Script& Script::polls_and_reads_clock(uint32_t times) {
  polls(times);
  current().thread.polling->reads_clock = true;
  return *this;
}

Script& Script::only_reads_clocks() {
  polls(20);
  current().thread.polling->polls = 0;
  current().thread.polling->reads_clock = true;
  return *this;
}

Script& Script::rings() {
  nic_has_work_ = true;
  ++facts_.inputs;
  return *this;
}

Step Script::next() {
  for (int i = 0; i < kManySteps; ++i) {
    waiting_.clear();
    for (const auto& [number, one] : threads_)
      if (!one.has_turn) waiting_.push_back(one.thread);
    facts_.threads = waiting_;
    facts_.device = facts_.timers = schedule::kNever;
    for (const Due& due : due_) facts_.device = std::min(facts_.device, due.time);
    for (const Instant timer : timers_) facts_.timers = std::min(facts_.timers, timer);
    const Step step = scheduler_.next(facts_);
    if (!take(step)) return step;
  }
  ADD_FAILURE() << "it goes on for ever";
  return {Step::Kind::kEnd};
}

/// Executes a step that the script need not mention. Returns false if the script must mention it.
bool Script::take(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kContinue:
    case Step::Kind::kShow:
      return true;
    case Step::Kind::kLookForNews:
      scheduler_.heard_news(have_changed_);
      return true;
    case Step::Kind::kRunDevice:
      scheduler_.device_ran(std::exchange(nic_has_work_, false),
                            std::exchange(have_changed_, false));
      return true;
    case Step::Kind::kServeControl:
      scheduler_.control_served(is_asked_outside_ || std::exchange(is_asked_, false), false);
      return true;
    case Step::Kind::kActIdle:
      scheduler_.acted_idle(false);
      return true;
    case Step::Kind::kLookAtQps:
      scheduler_.saw_qps({stand_still_ ? 0 : ++qp_progress_}, /*may_repeat=*/true);
      return true;
    case Step::Kind::kGiveTurn: {
      const uint64_t number = kFirstSlot - step.slot;
      if (number == expected_ || !threads_.contains(number)) return false;
      const ThreadOfScript& one = threads_.at(number);
      if (!one.had_turn || one.polls || one.is_preempted || one.thread.deadline <= facts_.now)
        return false;
      scheduler_.turn_ended({});
      return true;
    }
    case Step::Kind::kReportHang:
    case Step::Kind::kAdvance:
    case Step::Kind::kWait:
    case Step::Kind::kEnd:
      return false;
  }
  return false;
}

std::string Script::words(const Step& step) const {
  std::string words = name_of(step.kind);
  if (step.kind == Step::Kind::kGiveTurn) words += " " + std::to_string(kFirstSlot - step.slot);
  if (step.kind == Step::Kind::kAdvance) words += " " + text(step.until);
  return words + " at " + text(facts_.now);
}

Step Script::expect(Step::Kind kind, int line) {
  const Step step = next();
  EXPECT_EQ(static_cast<int>(step.kind), static_cast<int>(kind))
      << "line " << line << ": expected that it " << name_of(kind) << "; it " << words(step);
  return step;
}

Script& Script::at(Duration time, int line) {
  EXPECT_EQ(facts_.now, Instant(time)) << "line " << line << ": it is " << text(facts_.now);
  return *this;
}

Script& Script::gives(uint64_t thread, int line) {
  expected_ = thread;
  const Step step = expect(Step::Kind::kGiveTurn, line);
  expected_.reset();
  if (step.kind != Step::Kind::kGiveTurn) return *this;
  EXPECT_EQ(kFirstSlot - step.slot, thread) << "line " << line;
  begin_turn(step);
  return *this;
}

void Script::begin_turn(const Step& step) {
  current_ = kFirstSlot - step.slot;
  current().has_turn = true;
  granted_ = step.polls;
  granted_calls_ = step.calls;
}

Script& Script::for_polls(uint32_t polls, Duration each, int line) {
  EXPECT_EQ(granted_.polls, polls) << "line " << line;
  EXPECT_EQ(granted_.each, each) << "line " << line;
  return *this;
}

uint32_t Script::plays(const TurnOfThread& turn) {
  for (uint32_t turns = 0; turns < kManyTurns;) {
    const Step step = next();
    if (step.kind == Step::Kind::kAdvance) {
      advance(step.until);
    } else if (step.kind == Step::Kind::kGiveTurn) {
      begin_turn(step);
      ++turns;
      if (!turn(*this, current_)) return turns;
    } else {
      stopped_by_ = step.kind;
      return turns;
    }
  }
  ADD_FAILURE() << "it goes on for ever";
  return kManyTurns;
}

Script& Script::advances_to(Duration time, int line) {
  const Step step = expect(Step::Kind::kAdvance, line);
  if (step.kind != Step::Kind::kAdvance) return *this;
  EXPECT_EQ(step.until, Instant(time)) << "line " << line << ": it " << words(step);
  advance(step.until);
  return *this;
}

void Script::advance(Instant until) {
  facts_.now = std::max(facts_.now, until);
  const auto is_due = [this](const Due& due) { return due.time <= facts_.now; };
  const bool happened = std::ranges::any_of(due_, is_due);
  const bool is_seen =
      std::ranges::any_of(due_, [&](const Due& due) { return is_due(due) && due.is_seen; });
  std::erase_if(due_, is_due);
  const bool expired =
      std::erase_if(timers_, [this](Instant timer) { return timer <= facts_.now; }) != 0;
  scheduler_.advanced(facts_.now, is_seen || expired, happened || expired);
}

Script& Script::reports_hang(int line) {
  Step step = next();
  while (step.kind == Step::Kind::kWait) step = next();
  EXPECT_EQ(static_cast<int>(step.kind), static_cast<int>(Step::Kind::kReportHang))
      << "line " << line << ": expected a report of a hang; it " << words(step);
  return *this;
}

Script& Script::waits_outside(int line) {
  expect(Step::Kind::kWait, line);
  return *this;
}

Script& Script::ends_run(int line) {
  expect(Step::Kind::kEnd, line);
  return *this;
}

}  // namespace rocemu::test
