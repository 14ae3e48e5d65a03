// The commands rdma_connect, rdma_accept and so on, which become calls of the connection manager.
// States and errors are those of Linux's rdma_cm.
#pragma once

#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/cm/environment.h"
#include "emulator/engine/events.h"
#include "emulator/engine/rdmacm/id_table.h"

namespace rocemu::engine::cm::commands {

// All of these functions return 0 or an errno value.
int connect(const IdTable& ids, ConnectionManager& connections, const Environment& environment,
            const CmCommand& command);
int accept(const IdTable& ids, ConnectionManager& connections, const CmCommand& command);
int reject(const IdTable& ids, ConnectionManager& connections, const CmCommand& command);
int notify(const IdTable& ids, ConnectionManager& connections, const CmCommand& command);
int disconnect(const IdTable& ids, ConnectionManager& connections, const CmCommand& command);

}  // namespace rocemu::engine::cm::commands
