// The clock of completion timestamps: the daemon's, which counts nanoseconds from its start on
// CLOCK_MONOTONIC. So the client reads the same clock without asking.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace rocemu::provider {

/// The device's time now. Of a completion that was seen before, the timestamp is not later.
uint64_t device_time_ns(ibv_context* context);

/// CLOCK_REALTIME at that device time, counted from its value when the daemon started, so that
/// stepping the system's clock changes nothing and the same device time always has the same
/// wall-clock time. This follows mlx5, whose clock gets the time of day once and then runs by
/// itself. On a virtual clock it is the programs' CLOCK_REALTIME, which begins with the year 2000.
uint64_t wall_clock_ns(ibv_context* context, uint64_t device_time_ns);

}  // namespace rocemu::provider
