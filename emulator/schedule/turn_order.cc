#include "emulator/schedule/turn_order.h"

namespace rocemu::schedule {
namespace {

/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014: mix64variant13.
uint64_t mixed(uint64_t value) {
  value += 0x9e37'79b9'7f4a'7c15;
  value = (value ^ (value >> 30)) * 0xbf58'476d'1ce4'e5b9;
  value = (value ^ (value >> 27)) * 0x94d0'49bb'1331'11eb;
  return value ^ (value >> 31);
}

}  // namespace

TurnOrder::Place TurnOrder::place_of(const Thread& thread, Instant now) const {
  if (schedule_ == 0) return {0, thread.serial};
  const uint64_t time = engine::nanoseconds_since_start(now);
  return {mixed(mixed(mixed(schedule_) ^ time) ^ thread.serial), thread.serial};
}

}  // namespace rocemu::schedule
