// Only tests compile this file. It reads the counter with the name COUNTER in the same way as the
// sysfs rows.
#include "emulator/engine/base/counters.h"

static_assert(rocemu::engine::Counters().get(rocemu::engine::Counter::COUNTER) == 0);
