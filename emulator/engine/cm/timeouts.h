// The timeouts of the connection manager: for answers, for timewait, and for closed connections
// that are kept for a while
#pragma once

#include "emulator/engine/cm/protocol_context.h"

namespace rocemu::engine::cm::timeouts {

/// Handles all timers that are due, in the order of their deadlines.
void expire(ProtocolContext& context);

/// Stops waiting for the answer to the connection's latest message: reports an error event, and
/// ends the connection or resolution.
void give_up(ProtocolContext& context, Connection& connection);

}  // namespace rocemu::engine::cm::timeouts
