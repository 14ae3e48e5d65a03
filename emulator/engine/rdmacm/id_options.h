// Implements rdma_set_option(3).
#pragma once

#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/event_output.h"
#include "emulator/engine/rdmacm/id_table.h"

namespace rocemu::engine::cm::commands {

/// Sets an option of an id. Returns 0 or an errno value.
int set_option(const IdTable& ids, EventOutput& events, const CmCommand& command);

}  // namespace rocemu::engine::cm::commands
