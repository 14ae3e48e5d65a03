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
  /// Nanoseconds. A party of ours gives the processor back within some microseconds; who keeps it
  /// for longer than this has work of its own, and would keep it for a time slice (milliseconds) at
  /// each yield. A thread that sleeps instead runs as soon as it is woken.
  int64_t long_turn_ns = 300'000;
  /// Nanoseconds. A yield that took less let nobody in.
  int64_t shortest_turn_ns = 1'000;
  /// Nanoseconds. Where no yield of `turns` that let somebody in took less, a switch between
  /// threads costs so much, as on some virtual machines, that it pays to have none in vain: the
  /// daemon wakes the right thread. Where switches are cheap a yield takes this long only if many
  /// take part.
  int64_t dear_turn_ns = 40'000;
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
  /// A yield took that long.
  void gave_way(int64_t took_ns);

 private:
  void begin_sleeps();

  uint32_t sleeps_left_ = 0;
  uint32_t sleeps_ = 0;  // after the latest long turn
  uint32_t turns_ = 0;   // that were all dear
};

}  // namespace rocemu::provider
