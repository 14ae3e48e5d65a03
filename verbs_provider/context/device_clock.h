// The clock of completion timestamps: the daemon's, which counts nanoseconds from its start on
// CLOCK_MONOTONIC. The client can therefore read the same clock without a request.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace rocemu::provider {

/// Returns the device's time. It is never earlier than the timestamp of a completion that was
/// polled before.
uint64_t device_time_ns(ibv_context* context);

/// Returns the value of CLOCK_REALTIME at that device time, counted from its value when the daemon
/// started. Stepping the system's clock therefore has no effect, and the same device time always
/// has the same wall-clock time. This follows mlx5, whose clock gets the time of day once and then
/// runs by itself. On a virtual clock, the result is the CLOCK_REALTIME that the programs see,
/// which starts with the year 2000.
uint64_t wall_clock_ns(ibv_context* context, uint64_t device_time_ns);

}  // namespace rocemu::provider
