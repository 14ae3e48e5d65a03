// Tests random threads that work, sleep, poll, and wait for each other and for the NIC: every ready
// thread finally runs, time does not advance beyond a deadline, and equal threads have equal runs.
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "emulator/schedule/scheduler.h"

namespace rocemu::property {

using namespace std::chrono_literals;
using schedule::Duration;
using schedule::Instant;
using schedule::Step;

struct Act {
  enum class Kind : uint8_t {
    kWork,
    kSleep,    // sleeps for `number` ns
    kPoll,     // polls `number` times and finds nothing
    kAsk,      // asks the NIC, which answers after `number` ns
    kAnswer,   // waits for the answer; returns at once if nothing was asked
    kPollFor,  // polls until the answer arrives
    kRaise,    // the flag `number`
    kAwait,    // the flag `number`
  };
  Kind kind;
  uint32_t number;
};
using Program = std::vector<Act>;

void showValue(const Act& act, std::ostream& os) {
  os << static_cast<int>(act.kind) << ":" << act.number;
}

constexpr uint32_t kFlags = 3;

/// Threads whose acts the test executes, a NIC that answers, and a clock.
class World {
 public:
  World(const std::vector<Program>& programs, uint64_t schedule)
      : has_priorities_(schedule != 0),
        scheduler_({.schedule = {.number = schedule}, .reports_hangs = true}) {
    for (uint32_t i = 0; i < programs.size(); ++i) {
      Thread thread;
      thread.program = programs[i];
      thread.seen = {.slot = i, .serial = i + 1};
      threads_.push_back(std::move(thread));
    }
  }

  /// Runs the threads, and returns everything that happened, as lines.
  std::vector<std::string> run() {
    for (int i = 0; i < 200'000; ++i) {
      const Step step = next();
      switch (step.kind) {
        case Step::Kind::kReportHang:
          // threads of this test poll only for a limited time
          if (std::ranges::any_of(threads_, &Thread::polls)) break;
          check_that_all_wait();  // no thread may be able to continue
          for (const Thread& thread : threads_) RC_ASSERT(!thread.is_preempted);
          return log_;
        case Step::Kind::kEnd:
          return log_;
        default:
          take(step);
      }
      if (std::ranges::all_of(threads_, [](const Thread& one) { return one.has_ended(); }))
        return log_;
    }
    RC_FAIL("it goes on for ever");
    return log_;
  }

 private:
  struct Thread {
    Program program;
    schedule::Thread seen;
    size_t act = 0;
    uint32_t polls_left = 0;
    bool is_in_act = false;
    std::optional<Instant> answer;  // the time of the NIC's answer
    bool polls = false;             // the thread was polling at the end of its latest turn
    bool is_preempted = false;      // the thread was preempted at the end of its latest turn
    // the time from which the thread could have continued; set only with priorities
    std::optional<Instant> could_since;

    bool has_ended() const { return act == program.size(); }
  };

  Step next() {
    waiting_.clear();
    for (const Thread& thread : threads_)
      if (!thread.has_ended()) waiting_.push_back(thread.seen);
    schedule::Facts facts{.now = now_, .threads = waiting_, .real_now = real_now_};
    real_now_ += 10ms;
    for (const Instant answer : due_) facts.device = std::min(facts.device, answer);
    return scheduler_.next(facts);
  }

  void take(const Step& step) {
    switch (step.kind) {
      case Step::Kind::kLookForNews:
        return scheduler_.heard_news(false);
      case Step::Kind::kGiveTurn:
        return have_turn(threads_.at(step.slot), step.polls, step.calls);
      case Step::Kind::kRunDevice:
        scheduler_.device_ran(std::exchange(was_asked_, false), false);
        return;
      case Step::Kind::kServeControl:
        return scheduler_.control_served(false, false);
      case Step::Kind::kActIdle:
        return scheduler_.acted_idle(false);
      case Step::Kind::kAdvance:
        return advance(step.until);
      case Step::Kind::kLookAtQps:
        return scheduler_.saw_qps({}, false);
      case Step::Kind::kContinue:
      case Step::Kind::kShow:
      case Step::Kind::kReportHang:
      case Step::Kind::kWait:
      case Step::Kind::kEnd:
        return;
    }
  }

  bool can_go_on(const Thread& thread) const {
    const Act& act = thread.program[thread.act];
    switch (act.kind) {
      case Act::Kind::kAwait:
        return flags_[act.number % kFlags];
      case Act::Kind::kAnswer:
      case Act::Kind::kPollFor:
        return !thread.answer || *thread.answer <= now_;
      default:
        return true;
    }
  }

  /// Returns the time from which a polling thread may continue. Polls are longer than 50 ns each
  /// only while nothing happens (docs/design/time.md).
  Instant end_of_polls(const schedule::Polling& polling) const {
    if (happened_at_ < polling.polled_at) return polling.ready_at;
    return std::min(polling.ready_at, polling.polled_at + polling.polls * 50ns);
  }

  /// Before time advances, and before a hang, every thread that could continue must have had a
  /// turn.
  void check_that_all_wait() const {
    for (const Thread& thread : threads_) {
      if (thread.has_ended()) continue;
      const bool sleeps = thread.seen.deadline != schedule::kNever && thread.seen.deadline > now_;
      const bool is_asleep = thread.is_in_act && (sleeps || thread.polls);
      RC_ASSERT(is_asleep || thread.is_preempted || (thread.is_in_act && !can_go_on(thread)));
    }
  }

  /// A thread whose priority is lower than the NIC's may have to wait for the NIC, but no longer
  /// than 1,024 us.
  void check_that_none_starves(Instant until) {
    for (Thread& thread : threads_) {
      const bool sleeps = thread.seen.deadline != schedule::kNever && thread.seen.deadline > now_;
      const bool polls =
          thread.polls && thread.seen.polling && end_of_polls(*thread.seen.polling) > now_;
      const bool could = !thread.has_ended() && (thread.is_preempted || !thread.is_in_act ||
                                                 (!sleeps && !polls && can_go_on(thread)));
      if (!could) {
        thread.could_since.reset();
        continue;
      }
      if (!thread.could_since) thread.could_since = now_;
      RC_ASSERT(until <= *thread.could_since + 1024us);
    }
  }

  void advance(Instant until) {
    if (has_priorities_)
      check_that_none_starves(until);
    else
      check_that_all_wait();
    RC_ASSERT(until >= now_);
    for (const Instant answer : due_) RC_ASSERT(until <= answer);
    for (const schedule::Thread& thread : waiting_) {
      if (thread.deadline > now_) RC_ASSERT(until <= thread.deadline);
      if (thread.polling && end_of_polls(*thread.polling) > now_)
        RC_ASSERT(until <= end_of_polls(*thread.polling));
    }
    now_ = until;
    log_.push_back("time " + std::to_string(now_.time_since_epoch().count()));
    const bool answers = std::erase_if(due_, [this](Instant one) { return one <= now_; }) != 0;
    if (answers) happened_at_ = now_;
    scheduler_.advanced(now_, answers, answers);
  }

  void have_turn(Thread& thread, schedule::PollGrant granted, uint32_t calls) {
    thread.is_preempted = false;
    thread.could_since.reset();
    const uint32_t granted_calls = calls;
    if (thread.seen.polling)
      RC_ASSERT(thread.seen.polling->polled_at + thread.seen.polling->polls * 50ns <= now_);
    log_.push_back("turn " + std::to_string(thread.seen.serial) + ", " +
                   std::to_string(granted.polls));
    schedule::Turn turn;
    while (!thread.has_ended() && go_on(thread, granted, turn)) {
      turn.progressed = true;
      if (calls == 0 || thread.has_ended() || --calls != 0) continue;
      thread.is_preempted = true;
      break;
    }
    turn.is_preempted = thread.is_preempted;
    turn.calls = granted_calls - calls;
    if (thread.has_ended()) turn.progressed = true;
    if (turn.progressed) happened_at_ = now_;
    thread.polls = turn.polls;
    if (!turn.polls) thread.seen.polling.reset();
    scheduler_.turn_ended(turn);
  }

  void poll(Thread& thread, uint32_t times, schedule::PollGrant granted, schedule::Turn& turn) {
    std::optional<schedule::Polling>& polling = thread.seen.polling;
    if (!polling || turn.progressed) polling = schedule::Polling{.since = now_};
    polling->polled_at = now_;
    polling->polls = times;
    polling->streak += times;
    polling->ready_at = now_ + times * granted.each;
    turn.polls = true;
  }

  /// Continues the act. Returns whether the act is over, so that the thread continues with the next
  /// act in the same turn.
  bool go_on(Thread& thread, schedule::PollGrant granted, schedule::Turn& turn) {
    const Act& act = thread.program[thread.act];
    const bool begins = !std::exchange(thread.is_in_act, true);
    switch (act.kind) {
      case Act::Kind::kWork:
        break;
      case Act::Kind::kSleep:
        if (begins) thread.seen.deadline = now_ + Duration(1 + act.number);
        if (now_ < thread.seen.deadline) return false;
        break;
      case Act::Kind::kPoll: {
        if (begins) thread.polls_left = act.number;
        if (thread.polls_left == 0) break;
        const uint32_t times = std::min(thread.polls_left, std::max(granted.polls, 2U));
        thread.polls_left -= times;
        poll(thread, times, turn.progressed ? schedule::PollGrant{} : granted, turn);
        return false;
      }
      case Act::Kind::kAsk:
        thread.answer = now_ + Duration(1 + act.number);
        due_.push_back(*thread.answer);
        was_asked_ = true;
        break;
      case Act::Kind::kAnswer:
        if (!can_go_on(thread)) return false;
        break;
      case Act::Kind::kPollFor:
        if (can_go_on(thread)) break;
        poll(thread, std::max(granted.polls, 2U), granted, turn);
        return false;
      case Act::Kind::kRaise:
        flags_[act.number % kFlags] = true;
        break;
      case Act::Kind::kAwait:
        if (!can_go_on(thread)) return false;
        break;
    }
    thread.is_in_act = false;
    thread.seen.deadline = schedule::kNever;
    ++thread.act;
    return true;
  }

  bool has_priorities_;
  schedule::Scheduler scheduler_;
  std::vector<Thread> threads_;
  std::vector<schedule::Thread> waiting_;
  std::vector<Instant> due_;
  bool flags_[kFlags] = {};
  bool was_asked_ = false;
  Instant now_{}, real_now_{};
  Instant happened_at_{};  // the latest time at which a thread continued or the NIC answered
  std::vector<std::string> log_;
};

}  // namespace rocemu::property

namespace rc {

using rocemu::property::Act;

template <>
struct Arbitrary<Act> {
  static Gen<Act> arbitrary() {
    const auto numbers = gen::oneOf(gen::inRange<uint32_t>(0, 4), gen::inRange<uint32_t>(0, 5000),
                                    gen::inRange<uint32_t>(0, 3'000'000));
    return gen::build<Act>(
        gen::set(&Act::kind, gen::element(Act::Kind::kWork, Act::Kind::kSleep, Act::Kind::kPoll,
                                          Act::Kind::kAsk, Act::Kind::kAnswer, Act::Kind::kPollFor,
                                          Act::Kind::kRaise, Act::Kind::kAwait)),
        gen::set(&Act::number, numbers));
  }
};

}  // namespace rc

int main() {
  using rocemu::property::Program;
  using rocemu::property::World;
  const bool holds = rc::check(
      "no ready thread is forgotten, no deadline is passed, and a run is the same each time", [] {
        const auto programs = *rc::gen::resize(
            8, rc::gen::nonEmpty(rc::gen::container<std::vector<Program>>(
                   rc::gen::container<Program>(rc::gen::arbitrary<rocemu::property::Act>()))));
        const uint64_t schedule = *rc::gen::inRange<uint64_t>(0, 20);
        const auto log = World(programs, schedule).run();
        RC_ASSERT(log == World(programs, schedule).run());
      });
  return holds ? 0 : 1;
}
