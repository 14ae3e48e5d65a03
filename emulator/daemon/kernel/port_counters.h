// A port's counters under the names of the kernel's drivers
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "emulator/engine/base/counters.h"
#include "emulator/engine/base/simulated_network.h"

namespace rocemu::daemon {

struct NamedCounter {
  std::string_view name;
  uint64_t value;
};

/// Returns the counters in `counters/`: those of the specification's performance management (IBTA
/// vol 1, 16.1.3.5), with mlx5's names.
std::vector<NamedCounter> port_counters(const engine::Counters& counters);

/// Returns the counters in `hw_counters/` and of `rdma statistic`: rxe's and mlx5's. With `pauses`
/// also rx_prio0_pause and the like, which mlx5 shows in `ethtool -S`.
std::vector<NamedCounter> hardware_counters(const engine::Counters& counters,
                                            const std::optional<engine::PauseCounters>& pauses);

}  // namespace rocemu::daemon
