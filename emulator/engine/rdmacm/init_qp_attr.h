// Implements rdma_init_qp_attr(3).
#pragma once

#include <cstddef>
#include <vector>

#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/id_table.h"

namespace rocemu::engine::cm::commands {

/// Writes the attributes that the id's QP needs for a transition to `response`. Returns 0 or an
/// errno value.
int init_qp_attr(const IdTable& ids, const ConnectionManager& connections, const CmCommand& command,
                 std::vector<std::byte>& response);

}  // namespace rocemu::engine::cm::commands
