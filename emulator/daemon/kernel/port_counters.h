// A port's counters under the names that the kernel's drivers have for them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/engine/base/counters.h"

namespace rocemu::daemon {

struct NamedCounter {
  std::string_view name;
  uint64_t value;
};

/// Those of `counters/`: of the specification's performance management (IBTA vol 1, 16.1.3.5), as
/// mlx5 has them.
std::vector<NamedCounter> port_counters(const engine::Counters& counters);

/// Those of `hw_counters/` and of `rdma statistic`: rxe's and mlx5's.
std::vector<NamedCounter> hardware_counters(const engine::Counters& counters);

}  // namespace rocemu::daemon
