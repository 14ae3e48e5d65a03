// Scripts for the scheduler in the style of packetdrill, with threads, a NIC and timers that the
// script invents. A line states the time, the next action of the scheduler, and the result:
//
//   Script s;
//   s.starts(1).starts(2);
//   s.at(0ns).gives(1).sleeps_until(5us);
//   s.at(0ns).gives(2).ends();
//   s.at(0ns).advances_to(5us);
//   s.at(5us).gives(1).ends();
//
// Any other action of the scheduler is a failure of the script. Steps that find nothing are
// omitted: a check for news or of the control socket, and a NIC without work. Turns of threads that
// wait and do not poll are omitted, too: unless the script expects such a turn, the thread checks
// again and continues to wait.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulator/schedule/scheduler.h"

namespace rocemu::test {

using schedule::Duration;
using schedule::Facts;
using schedule::Instant;
using schedule::Options;
using schedule::Step;
using schedule::Turn;

class Script {
 public:
  explicit Script(const Options& options = {.reports_hangs = true}) : scheduler_(options) {}

  // ---- The world --------------------------------------------------------------------------------

  /// Starts a thread, which has not had a turn yet.
  Script& starts(uint64_t thread);
  /// Lets work of the NIC be due at that time. `is_seen`: whether programs may see the work.
  Script& nic_is_due(Duration time, bool is_seen = true);
  Script& timer_is_due(Duration time);
  /// Changes other facts.
  Script& with(const std::function<void(Facts&)>& change);
  /// A process outside the run sends a request to the control socket each time that the scheduler
  /// checks the socket.
  Script& is_asked_without_end();
  /// QPs have made no progress whenever the scheduler checks.
  Script& qps_stand_still();

  // ---- How a given turn ends -------------------------------------------------------------------

  /// The thread did something, and waits for another thread.
  Script& waits();
  /// The thread did something, and waits for another thread or until that time.
  Script& sleeps_until(Duration time);
  /// The thread checked again what it had checked before, and still waits.
  Script& looks_again();
  Script& ends();
  /// The thread polled without a result, and continues to poll: `times` times, with at most the
  /// granted time for each poll, or as often as was granted. With a clock: it also read a clock in
  /// the turn.
  Script& polls(uint32_t times);
  Script& polls_on();
  /// The thread found something in this turn before it polled.
  Script& finds_something();
  Script& polls_and_reads_clock(uint32_t times);
  Script& only_reads_clocks();
  Script& ends_turn(const Turn& turn);
  /// The thread made the granted number of calls, and could continue.
  Script& is_preempted();
  /// The thread sent a request to the control socket in this turn, and waits for the reply.
  Script& asks();
  /// The thread makes `count` calls in this turn, and is not preempted.
  Script& calls(uint32_t count);
  /// The thread rings doorbells in this turn, which cause work for the NIC.
  Script& rings();

  // ---- What the scheduler must do --------------------------------------------------------------

  Script& at(Duration time, int line = __builtin_LINE());
  Script& gives(uint64_t thread, int line = __builtin_LINE());
  Script& advances_to(Duration time, int line = __builtin_LINE());
  /// The given turn must allow `polls` polls.
  Script& for_polls(uint32_t polls, Duration each, int line = __builtin_LINE());
  Script& reports_hang(int line = __builtin_LINE());
  Script& waits_outside(int line = __builtin_LINE());
  Script& ends_run(int line = __builtin_LINE());

  /// Gives the threads their turns, in which each does what `turn` does. Ends when `turn` returns
  /// false, or when anything happens except turns and clock advances. Returns the number of turns.
  using TurnOfThread = std::function<bool(Script&, uint64_t thread)>;
  uint32_t plays(const TurnOfThread& turn);

  schedule::Scheduler& scheduler() { return scheduler_; }
  Instant now() const { return facts_.now; }
  schedule::PollGrant granted() const { return granted_; }
  uint32_t granted_calls() const { return granted_calls_; }
  /// Returns the kind of the step that ended plays().
  Step::Kind stopped_by() const { return stopped_by_; }

 private:
  struct ThreadOfScript {
    schedule::Thread thread;
    bool has_turn = false;
    bool had_turn = false;  // ever
    bool is_preempted = false;
    bool polls = false;
  };
  struct Due {
    Instant time;
    bool is_seen;
  };

  /// Returns the next step that the script must mention.
  Step next();
  bool take(const Step& step);
  Step expect(Step::Kind kind, int line);
  ThreadOfScript& current() { return threads_.at(current_); }
  void advance(Instant until);
  void begin_turn(const Step& step);
  std::string words(const Step& step) const;

  schedule::Scheduler scheduler_;
  Facts facts_{};
  // the key is the number in the script, which is the serial number
  std::map<uint64_t, ThreadOfScript> threads_;
  std::vector<schedule::Thread> waiting_;
  std::vector<Due> due_;
  std::vector<Instant> timers_;
  std::optional<uint64_t> expected_;
  uint64_t current_ = 0;
  schedule::PollGrant granted_;
  uint32_t granted_calls_ = 0;
  uint32_t calls_ = 0;  // the number of calls that the thread makes in its turn
  Step::Kind stopped_by_ = Step::Kind::kContinue;
  bool found_ = false;
  bool is_asked_ = false, is_asked_outside_ = false;  // whether requests wait at the control socket
  bool nic_has_work_ = false, have_changed_ = false, stand_still_ = false;
  uint32_t qp_progress_ = 0;
};

}  // namespace rocemu::test
