// The information about rdma_cm ids that `rocemu show` and `rdma resource show cm_id` print
#pragma once

#include <vector>

#include "emulator/engine/rdmacm/id_table.h"
#include "emulator/engine/snapshot.h"

namespace rocemu::engine::cm {

/// Returns the ids that listen, in the order of their numbers.
std::vector<ListenerSnapshot> listeners_of(const IdTable& ids);
/// Returns all ids, in the order of their numbers.
std::vector<RdmaIdSnapshot> snapshots_of(const IdTable& ids);

}  // namespace rocemu::engine::cm
