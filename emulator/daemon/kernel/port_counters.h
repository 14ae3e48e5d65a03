// The counters of a port, with the names that the kernel's drivers use
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

/// Returns the files of the directory `counters`: the counters of performance management (IBTA vol
/// 1, 16.1.3.5), with the names of mlx5.
std::vector<NamedCounter> port_counters(const engine::Counters& counters);

/// Returns the files of the directory `hw_counters`, which `rdma statistic` also shows, with the
/// names of rxe and mlx5. If `pauses` has a value, includes PFC counters such as rx_prio0_pause,
/// which mlx5 shows in `ethtool -S`.
std::vector<NamedCounter> hardware_counters(const engine::Counters& counters,
                                            const std::optional<engine::PauseCounters>& pauses);

}  // namespace rocemu::daemon
