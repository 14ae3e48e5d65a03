// The timeouts of the connection manager: for answers, for timewait, and for closed connections
// that are kept for a while
#pragma once

#include "emulator/engine/cm/protocol_context.h"

namespace rocemu::engine::cm::timeouts {

/// Handles all timers that are due, in the order of their deadlines.
void expire(ProtocolContext& context);

/// Ends the wait for an answer to the connection's latest message.
void give_up(ProtocolContext& context, Connection& connection);

}  // namespace rocemu::engine::cm::timeouts
