// The time for which the daemon spins until a turn comes back, before it sleeps until it is
// notified. Most turns take a few microseconds, and waking the daemon on another processor takes 20
// us and more on a virtual machine. A pure function of measurements, so that tests need no clock
// (docs/design/turns.md).
#pragma once

#include <algorithm>
#include <chrono>

namespace rocemu::daemon {

struct AwakeConstants {
  using Duration = std::chrono::nanoseconds;
  /// The longest spin: the time that it takes to fall asleep and to be woken. A longer spin costs
  /// more than a sleep.
  Duration longest = std::chrono::microseconds(50);
  /// The length of a long turn. A thread that has its turn for longer computes, or waits for a
  /// processor, which the daemon must not keep. The value is larger than the cost of a sleep and a
  /// wake-up.
  Duration long_turn = std::chrono::microseconds(300);
  /// The factor for the time after a long turn in which the daemon sleeps without spinning,
  /// relative to the turn's length. A time slice of other threads is some milliseconds.
  int pause = 8;
  Duration longest_pause = std::chrono::seconds(1);
};
inline constexpr AwakeConstants kAwakeConstants;

class AwakeWait {
 public:
  using Duration = std::chrono::nanoseconds;
  using Instant = std::chrono::steady_clock::time_point;

  /// If `never` is true, the daemon always sleeps at once.
  explicit AwakeWait(bool never = false) : never_(never) {}

  /// Returns the time until which to spin for a turn that begins now; `now` means not to spin.
  Instant until(Instant now) const {
    return never_ || now < resumes_ ? now : now + kAwakeConstants.longest;
  }

  void turn_ended(Duration took, Instant now) {
    if (took < kAwakeConstants.long_turn) return;
    resumes_ = now + std::min(kAwakeConstants.pause * took, kAwakeConstants.longest_pause);
  }

 private:
  bool never_;
  Instant resumes_{};
};

}  // namespace rocemu::daemon
