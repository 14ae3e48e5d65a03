// Decides how long the daemon spins until a thread returns its turn, before it sleeps until it is
// notified. Most turns take a few microseconds, and waking the daemon on another processor takes 20
// us or more on a virtual machine. The decision is a pure function of measurements, so that tests
// need no clock (docs/design/turns.md).
#pragma once

#include <algorithm>
#include <chrono>

namespace rocemu::daemon {

struct AwakeConstants {
  using Duration = std::chrono::nanoseconds;
  /// The longest spin, which takes as long as falling asleep and being woken. A longer spin costs
  /// more than a sleep.
  Duration longest = std::chrono::microseconds(50);
  /// The duration from which a turn counts as long. The thread of a long turn computes, or waits
  /// for a processor, which the daemon must not keep. The value is larger than the cost of a sleep
  /// and a wake-up.
  Duration long_turn = std::chrono::microseconds(300);
  /// The time for which the daemon does not spin after a long turn, as a multiple of the turn's
  /// duration. A time slice of other threads is some milliseconds.
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

  /// Returns the time until which the daemon spins for a turn that begins at `now`; `now` if it
  /// must not spin.
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
