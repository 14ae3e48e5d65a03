#include "emulator/schedule/turn_order.h"

#include "emulator/schedule/mixed.h"

namespace rocemu::schedule {

TurnOrder::Place TurnOrder::place_of(const Thread& thread, Instant now) const {
  if (schedule_ == 0) return {0, thread.serial};
  const uint64_t time = engine::nanoseconds_since_start(now);
  return {mixed(mixed(mixed(schedule_) ^ time) ^ thread.serial), thread.serial};
}

}  // namespace rocemu::schedule
