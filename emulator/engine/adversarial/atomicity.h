// The class `atomicity`: IBV_ATOMIC_HCA says that atomics are atomic among those of the device and
// nothing else (IBTA vol 1, 9.4.5; ibv_query_device(3)). So some time passes between the load and
// the store of a remote atomic, and what a processor stores meanwhile is lost. Other requests of
// the NIC that touch the word find the result.
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
