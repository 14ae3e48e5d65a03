// How a thread waits that polls for completions and finds none. A pure function of what the thread
// measured, so that tests run it on a simulated scheduler (docs/design/waiting.md).
#pragma once

#include <cstdint>

#include "verbs_provider/polling/wait_budget.h"

namespace rocemu::provider {

/// What ROCEMU_POLL chooses.
enum class PollMode : uint8_t {
  kAdaptive,  // "adaptive", the default: yields, or sleeps where a yield takes too long, but only
              // for the time that its polls have earned (wait_budget.h)
  kYield,     // "yield": always gives the processor to who else wants it
  kSpin,      // "spin": never; for threads that have a processor each, beside a busy-polling daemon
};

/// Reads a value of ROCEMU_POLL; null means the default. False if there is no such mode.
bool parse_poll_mode(const char* text, PollMode* mode);

/// Of the adaptive mode.
struct WaitConstants {
  /// Nanoseconds, a little less than Linux's shortest time slice. A party of ours gives the
  /// processor back within some microseconds; who keeps it for longer than this has work of its
  /// own, and would keep it for a time slice at each yield. A thread that sleeps instead runs as
  /// soon as it is woken.
  int64_t long_turn_ns = 650'000;
  /// So many in a row show that it is so: single ones happen while programs start.
  uint32_t long_turns = 3;
  /// Nanoseconds. A yield that took less let nobody in.
  int64_t shortest_turn_ns = 1'000;
  /// Nanoseconds. Where a switch between threads took so long in each of `turns` yields that let
  /// somebody in, as on some virtual machines, it pays to have none in vain: the daemon wakes the
  /// right thread. A yield is as many switches as threads of ours yield on a processor, and one
  /// more for the daemon: where many do, it takes long though switches are cheap.
  int64_t dear_switch_ns = 15'000;
  uint32_t turns = 32;
  /// The number of sleeps after such turns before a yield is tried again, and twice as many each
  /// time that it is too early still.
  uint32_t few_sleeps = 200, many_sleeps = 10'000;
  /// Nanoseconds for which an empty poll sleeps at most if the thread looks at several CQs: the
  /// completion may be in another one. With one CQ the budget is the limit, which is much longer
  /// than a switch: threads that wake in vain would keep a machine busy on which switches are dear.
  int64_t longest_sleep_of_many_ns = 100'000;
};
inline constexpr WaitConstants kWaitConstants;

/// Of a thread.
class WaitPolicy {
 public:
  enum class Way : uint8_t { kPollOn, kGiveWay, kSleep };
  enum class Then : uint8_t { kPollsOn, kBlocks };

  /// A poll finds a completion.
  void finds() { budget_.finds(); }
  /// A poll finds none, while that number of threads of ours yields on a processor
  /// (abi::DoorbellRing::pollers_per_processor). If other threads poll the same CQ (CqSharing),
  /// turns may be long because one of them spins for a lock: they do not show dear switches then.
  void finds_nothing(uint32_t pollers, bool is_shared = false) {
    pollers_ = std::max(pollers, 1u);
    budget_.earn(pollers_, !is_shared && turns_ >= kWaitConstants.turns);
  }
  /// What to do then. A sleep takes `longest_sleep_ns` at most.
  Way next(PollMode mode, int64_t longest_sleep_ns = kBudgetConstants.most_ns);
  /// Whether there is time for a sleep for another reason.
  bool may_sleep(int64_t at_most_ns) const { return budget_.allows_sleep(at_most_ns); }

  /// A yield took that long. Where threads block, a turn has wake-ups in it and says nothing of
  /// what a switch takes.
  void gave_way(int64_t took_ns, Then then = Then::kPollsOn);
  /// A sleep took that long.
  void slept(int64_t took_ns) { budget_.slept(took_ns); }

 private:
  void begin_sleeps();

  WaitBudget budget_;
  uint32_t pollers_ = 1;
  uint32_t sleeps_left_ = 0;
  uint32_t sleeps_ = 0;      // after the latest long turn
  uint32_t turns_ = 0;       // that were all dear
  uint32_t long_turns_ = 0;  // in a row
};

}  // namespace rocemu::provider
