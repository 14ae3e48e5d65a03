// The daemon's clock: CLOCK_MONOTONIC as the engine counts it, from 0 at the daemon's start.
#pragma once

#include <chrono>
#include <cstdint>

#include "emulator/engine/time.h"

namespace rocemu::daemon {

class Clock {
 public:
  engine::Instant now() const {
    return engine::Instant(
        std::chrono::duration_cast<engine::Duration>(std::chrono::steady_clock::now() - start_));
  }

  /// CLOCK_MONOTONIC at Instant 0: what makes engine time of any reading of that clock.
  uint64_t start_ns() const {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count());
  }

  /// The wall-clock time of Instant 0.
  std::chrono::system_clock::time_point wall_start() const { return wall_start_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::system_clock::time_point wall_start_ = std::chrono::system_clock::now();
};

}  // namespace rocemu::daemon
