// The daemon's clock, as the engine counts it: either CLOCK_MONOTONIC from 0 at the daemon's start,
// or a virtual one, which begins at 0 and stands still until it is put forward.
#pragma once

#include <chrono>
#include <cstdint>

#include "emulator/abi/turn_table.h"
#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class Clock {
 public:
  enum class Kind : uint8_t { kReal, kVirtual };

  explicit Clock(Kind kind = Kind::kReal) : kind_(kind) {}

  bool is_virtual() const { return kind_ == Kind::kVirtual; }
  engine::Instant now() const { return is_virtual() ? virtual_now_ : real_now(); }
  /// Of a virtual clock; never back.
  void advance_to(engine::Instant instant) {
    if (instant > virtual_now_) virtual_now_ = instant;
  }

  /// What the daemon paces itself by, whatever the engine's clock.
  engine::Instant real_now() const {
    return engine::Instant(
        std::chrono::duration_cast<engine::Duration>(std::chrono::steady_clock::now() - start_));
  }

  /// CLOCK_MONOTONIC at Instant 0: what makes engine time of any reading of that clock. A virtual
  /// clock has nothing to do with it: 0.
  uint64_t start_ns() const {
    if (is_virtual()) return 0;
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count());
  }

  /// The wall-clock time of Instant 0. For a virtual clock it is constant: the time at which its
  /// programs' CLOCK_REALTIME begins.
  std::chrono::system_clock::time_point wall_start() const {
    constexpr std::chrono::nanoseconds kOfPrograms{abi::kRealtimeStartNs};
    using std::chrono::system_clock;
    return is_virtual() ? system_clock::time_point(
                              std::chrono::duration_cast<system_clock::duration>(kOfPrograms))
                        : wall_start_;
  }
  uint64_t wall_start_ns() const {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(wall_start().time_since_epoch())
            .count());
  }

 private:
  /// The wall-clock time at `instant`, which is past, as the clock is set now. The two clocks
  /// cannot be read at once; of a few attempts the one that took least time is the best.
  static std::chrono::system_clock::time_point wall_time_at(
      std::chrono::steady_clock::time_point instant) {
    std::chrono::system_clock::time_point best;
    auto shortest = std::chrono::steady_clock::duration::max();
    for (int attempt = 0; attempt < 10; ++attempt) {
      const auto before = std::chrono::steady_clock::now();
      const auto wall = std::chrono::system_clock::now();
      const auto took = std::chrono::steady_clock::now() - before;
      if (took >= shortest) continue;
      shortest = took;
      best = wall - (before + took / 2 - instant);
    }
    return best;
  }

  Kind kind_;
  engine::Instant virtual_now_{};
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::system_clock::time_point wall_start_ = wall_time_at(start_);
};

}  // namespace rocemu::daemon
