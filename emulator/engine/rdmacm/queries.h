// Queries for an id's addresses and path
#pragma once

#include <cstddef>
#include <vector>

#include "emulator/engine/cm/environment.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/id_table.h"

namespace rocemu::engine::cm::commands {

// Both functions return 0 or an errno value.
int query_route(const IdTable& ids, const Environment& environment, const CmCommand& command,
                std::vector<std::byte>& response);
int query(const IdTable& ids, const Environment& environment, const CmCommand& command,
          std::vector<std::byte>& response);

}  // namespace rocemu::engine::cm::commands
