// The class `relaxed`: ibv_reg_mr(3) says of IBV_ACCESS_RELAXED_ORDERING that "RDMA
// write-after-write message order is no longer guaranteed". A WRITE to such a region has an
// independent delay, and does not wait for the previous WRITE. Completions and atomics still see
// all earlier WRITEs.
#pragma once

#include "emulator/engine/adversarial/placement.h"

namespace rocemu::engine::adversarial {

/// Draws a plan for a WRITE. Half of the WRITEs are late, so that the next one overtakes them.
inline PlacementPlan draw_relaxed(Draw& draw) {
  PlacementPlan plan;
  const Duration delay = draw.delay();
  if (draw.one_in(2)) plan.delay = delay;
  return plan;
}

}  // namespace rocemu::engine::adversarial
