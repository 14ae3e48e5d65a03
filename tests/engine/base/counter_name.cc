// Compiled by tests only: reads a counter as the sysfs rows do, with the name COUNTER.
#include "emulator/engine/base/counters.h"

static_assert(rocemu::engine::Counters().get(rocemu::engine::Counter::COUNTER) == 0);
