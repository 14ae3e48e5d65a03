// The waiting policy of a thread that polls for completions and finds none. It is a pure function
// of the thread's measurements, so that tests can run it on a simulated scheduler
// (docs/design/waiting.md).
#pragma once

#include <cstdint>

#include "verbs_provider/polling/wait_budget.h"

namespace rocemu::provider {

/// The mode that ROCEMU_POLL chooses
enum class PollMode : uint8_t {
  /// "adaptive", the default: yields, or sleeps where a yield takes too long, but only for the time
  /// that its polls have earned (wait_budget.h)
  kAdaptive,
  kYield,  // "yield": always yields the processor
  /// "spin": never yields; for threads that have a processor each, beside a busy-polling daemon
  kSpin,
};

/// Parses a value of ROCEMU_POLL; null means the default. Returns false if there is no such mode.
bool parse_poll_mode(const char* text, PollMode* mode);

/// The constants of the adaptive mode
struct WaitConstants {
  /// The length of a long yield in nanoseconds, a little less than Linux's shortest time slice. A
  /// thread of rocemu yields the processor again within some microseconds. A thread that keeps it
  /// for longer has other work, and would keep it for a time slice after each yield. A thread that
  /// sleeps instead runs as soon as it is woken.
  int64_t long_yield_ns = 650'000;
  /// The number of long yields in a row after which a thread sleeps, since single long yields
  /// happen while programs start.
  uint32_t long_yields = 3;
  /// The shortest yield in nanoseconds: one that took less let no other thread run.
  int64_t shortest_yield_ns = 1'000;
  /// The cost in nanoseconds from which switches count as expensive, as on some virtual machines:
  /// each switch must have taken this long in `dear_yields` yields that let another thread run.
  /// Then unnecessary switches must be avoided, and the daemon wakes the right thread. A yield
  /// consists of as many switches as threads of rocemu yield on a processor, and one more for the
  /// daemon: with many threads it takes long although switches are cheap.
  int64_t dear_switch_ns = 15'000;
  uint32_t dear_yields = 32;
  /// The number of sleeps after expensive yields before a yield is tried again; it doubles each
  /// time that yields are still expensive.
  uint32_t few_sleeps = 200, many_sleeps = 10'000;
  /// The longest sleep of an empty poll, in nanoseconds, if the thread polls several CQs: the
  /// completion may be in another one. With one CQ the budget is the limit, which is much longer
  /// than a switch: threads that wake in vain would keep a machine busy on which switches are
  /// expensive.
  int64_t longest_sleep_of_many_ns = 100'000;
};
inline constexpr WaitConstants kWaitConstants;

/// The waiting policy of a thread
class WaitPolicy {
 public:
  enum class Way : uint8_t { kPollOn, kGiveWay, kSleep };
  enum class Then : uint8_t { kPollsOn, kBlocks };

  /// Notes that a poll found a completion.
  void finds() { budget_.finds(); }
  /// Notes that a poll found no completion, while `pollers` threads of rocemu yield on a processor
  /// (abi::DoorbellRing::pollers_per_processor). If other threads poll the same CQ (CqSharing),
  /// yields can be long because one of them spins for a lock: such yields do not show expensive
  /// switches.
  void finds_nothing(uint32_t pollers, bool is_shared = false) {
    pollers_ = std::max(pollers, 1u);
    budget_.earn(pollers_, !is_shared && dear_yields_ >= kWaitConstants.dear_yields);
  }
  /// Returns whether the thread now polls again, yields or sleeps. If it sleeps, the caller must
  /// limit the sleep to `longest_sleep_ns`.
  Way next(PollMode mode, int64_t longest_sleep_ns = kBudgetConstants.most_ns);
  /// Returns whether the budget permits a sleep of at most this time, whatever next() returns.
  bool may_sleep(int64_t at_most_ns) const { return budget_.allows_sleep(at_most_ns); }

  /// Notes that a yield took this time. If threads block, a yield includes wake-ups and does not
  /// show the cost of a switch.
  void gave_way(int64_t took_ns, Then then = Then::kPollsOn);
  /// Notes that a sleep took this time.
  void slept(int64_t took_ns) { budget_.slept(took_ns); }

 private:
  void begin_sleeps();

  WaitBudget budget_;
  uint32_t pollers_ = 1;
  uint32_t sleeps_left_ = 0;
  uint32_t sleeps_ = 0;       // after the latest long yield
  uint32_t dear_yields_ = 0;  // expensive yields in a row
  uint32_t long_yields_ = 0;  // in a row
};

}  // namespace rocemu::provider
