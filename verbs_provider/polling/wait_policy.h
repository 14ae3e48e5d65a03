// How a thread waits that polls for completions and finds none. A pure function of what the thread
// measured, so that tests run it on a simulated scheduler (docs/design/waiting.md).
#pragma once

#include <cstdint>

namespace rocemu::provider {

/// What ROCEMU_POLL chooses.
enum class PollMode : uint8_t {
  kAdaptive,  // "adaptive", the default: yields, and sleeps where a yield takes too long
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
  /// So many empty polls sleep after such turns before a yield is tried again, and twice as many
  /// each time that it is too early still.
  uint32_t few_sleeps = 200, many_sleeps = 10'000;
  /// Nanoseconds for which an empty poll sleeps at most: the program may have other things to do.
  /// Much longer than a switch, or threads that wake in vain would keep a machine busy on which
  /// switches are dear.
  int64_t longest_sleep_ns = 1'000'000;
  /// The same of a thread that looks at several CQs: the completion may be in another one.
  int64_t longest_sleep_of_many_ns = 100'000;
};
inline constexpr WaitConstants kWaitConstants;

/// Of a thread.
class WaitPolicy {
 public:
  enum class Way : uint8_t { kSpin, kGiveWay, kSleep };

  /// What to do after one more poll that found nothing.
  Way next(PollMode mode);
  enum class Then : uint8_t { kPollsOn, kBlocks };

  /// A yield took that long, while so many threads of ours yield on a processor
  /// (abi::DoorbellRing::pollers_per_processor). Where threads block, a turn has wake-ups in it and
  /// says nothing of what a switch takes.
  void gave_way(int64_t took_ns, uint32_t pollers, Then then = Then::kPollsOn);

 private:
  void begin_sleeps();

  uint32_t sleeps_left_ = 0;
  uint32_t sleeps_ = 0;      // after the latest long turn
  uint32_t turns_ = 0;       // that were all dear
  uint32_t long_turns_ = 0;  // in a row
};

}  // namespace rocemu::provider
