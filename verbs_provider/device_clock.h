// The clock of completion timestamps: the daemon's, which counts nanoseconds from its start on
// CLOCK_MONOTONIC. So the client reads the same clock without asking.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace rocemu::provider {

/// The device's time now. Of a completion that was seen before, the timestamp is not later.
uint64_t device_time_ns(ibv_context* context);

/// CLOCK_REALTIME, as it is set now, at the moment of that device time.
uint64_t wall_clock_ns(ibv_context* context, uint64_t device_time_ns);

}  // namespace rocemu::provider
