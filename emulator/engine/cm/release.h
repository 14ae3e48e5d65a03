// The end of a connection (IBTA vol 1, 12.9): DREQ, DREP and timewait. This file also handles LAP,
// which has no use on RoCE.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/engine/cm/protocol_context.h"

namespace rocemu::engine::cm::release {

// ---- Calls of the layer above, which connection_manager.h describes ----
int disconnect(ProtocolContext& context, ConnectionId id, std::span<const uint8_t> private_data);
int answer_disconnect(ProtocolContext& context, ConnectionId id,
                      std::span<const uint8_t> private_data);

// ---- Messages ----
void on_dreq(ProtocolContext& context, const Arrival& from, const wire::CmDreq& dreq);
void on_drep(ProtocolContext& context, const Arrival& from, const wire::CmDrep& drep);
void on_lap(ProtocolContext& context, const Arrival& from, const wire::CmLap& lap);
void on_apr(ProtocolContext& context, const Arrival& from, const wire::CmApr& apr);

// ---- Functions that the other stages call ----
void send_dreq(ProtocolContext& context, Connection& connection, const wire::CmDreq& request);
void send_drep(ProtocolContext& context, Connection& connection, const wire::CmDrep& reply);
/// Releases an established connection, because a message of the peer shows that the peer has
/// forgotten the connection (IBTA vol 1, 12.9.8.3.1).
void on_stale(ProtocolContext& context, Connection& connection);

}  // namespace rocemu::engine::cm::release
