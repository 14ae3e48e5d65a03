// The engine's time: a point on a clock that only the caller can read.
#pragma once

#include <chrono>
#include <cstdint>

namespace rocemu::engine {

using Duration = std::chrono::nanoseconds;

/// The tag of the clock that measures `now` of Engine::step(): monotonic time in a daemon on the
/// real clock, simulated time otherwise. The clock has no now(), since no code below step() may
/// read a clock.
struct EngineClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<EngineClock>;
  static constexpr bool is_steady = true;
};

using Instant = EngineClock::time_point;

constexpr uint64_t nanoseconds_since_start(Instant instant) {
  return static_cast<uint64_t>(instant.time_since_epoch().count());
}

}  // namespace rocemu::engine
