// The class `atomicity`: IBV_ATOMIC_HCA means that atomics are atomic only with respect to other
// atomics of the device (IBTA vol 1, 9.4.5; ibv_query_device(3)). With this class, some time passes
// between the load and the store of a remote atomic, and a value that a processor stores to the
// word during this time is lost. Other requests of the NIC that access the word see the result of
// the atomic.
#pragma once

#include "emulator/engine/adversarial/placement.h"

namespace rocemu::engine::adversarial {

inline PlacementPlan draw_atomic_store(Draw& draw) {
  PlacementPlan plan;
  const Duration delay = draw.delay();
  if (!draw.one_in(4)) plan.delay = delay;
  return plan;
}

}  // namespace rocemu::engine::adversarial
