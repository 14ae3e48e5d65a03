// The daemon's clock in engine time. It is either CLOCK_MONOTONIC, counted from the daemon's start,
// or a virtual clock, which starts at 0 and stands still until it is advanced.
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
  /// Advances a virtual clock. Does nothing if `instant` is in the past.
  void advance_to(engine::Instant instant) {
    if (instant > virtual_now_) virtual_now_ = instant;
  }

  /// Returns the real time since the daemon's start, even if the engine's clock is virtual.
  engine::Instant real_now() const {
    return engine::Instant(
        std::chrono::duration_cast<engine::Duration>(std::chrono::steady_clock::now() - start_));
  }

  /// Returns the value of CLOCK_MONOTONIC at Instant 0, which converts times of that clock to
  /// engine time. Returns 0 for a virtual clock, which is independent of CLOCK_MONOTONIC.
  uint64_t start_ns() const {
    if (is_virtual()) return 0;
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count());
  }

  /// Returns the wall-clock time of Instant 0. For a virtual clock it is a constant: the time that
  /// CLOCK_REALTIME has at the start of a run.
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
  /// Returns the wall-clock time at `instant`, which is in the past, according to the current
  /// setting of the wall clock. The wall clock and the steady clock cannot be read at the same
  /// instant. Therefore both are read several times, and the fastest reading, which is the most
  /// precise, is used.
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
