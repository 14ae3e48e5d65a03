#include "verbs_provider/context/device_clock.h"

#include <ctime>

#include "verbs_provider/context/context.h"

namespace rocemu::provider {
namespace {

uint64_t read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

/// Returns the ring that contains the virtual clock, or null if the device has the real clock.
const abi::DoorbellRing* virtual_clock(ibv_context* context) {
  const SharedPiece& memory = context_of(context)->parts.memory;
  if (memory.size() == 0) return nullptr;  // a test created this context, without a daemon
  const auto* ring = reinterpret_cast<const abi::DoorbellRing*>(memory.at(0));
  return ring->is_virtual.load(std::memory_order_relaxed) != 0 ? ring : nullptr;
}

}  // namespace

uint64_t device_time_ns(ibv_context* context) {
  if (const auto* clock = virtual_clock(context)) {
    return clock->device_time_ns.load(std::memory_order_relaxed);
  }
  return read_clock(CLOCK_MONOTONIC) - context_of(context)->parts.clock_start_ns;
}

uint64_t wall_clock_ns(ibv_context* context, uint64_t device_time_ns) {
  return context_of(context)->parts.wall_start_ns + device_time_ns;
}

}  // namespace rocemu::provider
