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
  /// A turn that takes longer computes, or its thread waits for a processor, which we must not
  /// keep: for so long after one the daemon sleeps at once. Doubled each time that this was too
  /// short.
  Duration shortest_pause = std::chrono::milliseconds(20);
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

  /// It was waited for awake, and came back in time or not.
  void ended(bool in_time, Instant now) {
    if (in_time) {
      if (++in_time_ >= kRecovered) pause_ = kAwakeConstants.shortest_pause;
      return;
    }
    resumes_ = now + pause_;
    pause_ = std::min(2 * pause_, kAwakeConstants.longest_pause);
    in_time_ = 0;
  }

 private:
  /// So many turns in a row that came back in time: whoever was in the way is gone.
  static constexpr uint32_t kRecovered = 1000;

  bool never_;
  uint32_t in_time_ = 0;
  Duration pause_ = kAwakeConstants.shortest_pause;
  Instant resumes_{};
};

}  // namespace rocemu::daemon
