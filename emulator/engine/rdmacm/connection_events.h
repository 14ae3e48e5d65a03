// Converts the connection manager's events for a connection to events of the connection's rdma_cm
// id.
#pragma once

#include "emulator/engine/cm/cm_events.h"
#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/rdmacm/event_output.h"
#include "emulator/engine/rdmacm/rdma_id.h"

namespace rocemu::engine::cm {

/// Handles an event of the id's connection or resolution. (IncomingRequests handles the events of
/// requests.)
void handle_connection_event(RdmaId& id, const ConnectionManager& connections, EventOutput& output,
                             const Event& event);

}  // namespace rocemu::engine::cm
