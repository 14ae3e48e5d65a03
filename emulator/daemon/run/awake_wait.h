// How long the daemon waits awake for a turn to come back, before it sleeps until it is told. Most
// turns take a few microseconds, and to wake the daemon on another processor takes 20 and more on a
// virtual machine. A pure function of what it measured, so that tests need no clock
// (docs/design/turns.md).
#pragma once

#include <algorithm>
#include <chrono>

namespace rocemu::daemon {

struct AwakeConstants {
  using Duration = std::chrono::nanoseconds;
  /// As long as it takes to fall asleep and to be woken: by then a sleep would have cost as much.
  Duration longest = std::chrono::microseconds(50);
  /// A thread that has its turn for longer computes, or waits for a processor, which we must not
  /// keep. More than a sleep and a wake.
  Duration long_turn = std::chrono::microseconds(300);
  /// For so many times as long as such a turn took the daemon sleeps at once; a time slice of
  /// others is some milliseconds.
  int pause = 8;
  Duration longest_pause = std::chrono::seconds(1);
};
inline constexpr AwakeConstants kAwakeConstants;

class AwakeWait {
 public:
  using Duration = std::chrono::nanoseconds;
  using Instant = std::chrono::steady_clock::time_point;

  /// `never`: sleeps at once.
  explicit AwakeWait(bool never = false) : never_(never) {}

  /// Until when to wait awake for a turn that begins now; `now` for not at all.
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
