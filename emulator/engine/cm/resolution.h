// Service ID resolution (IBTA vol 1, 12.11): one request, one reply.
#pragma once

#include "emulator/engine/cm/listeners.h"
#include "emulator/engine/cm/protocol_context.h"
#include "wire/result.h"

namespace rocemu::engine::cm::resolution {

// ---- Calls of the layer above, which connection_manager.h describes ----
wire::Result<ConnectionId, int> resolve(ProtocolContext& context, const Resolve& resolve);
int answer(ProtocolContext& context, ConnectionId id, const Resolved& resolved);

// ---- Messages ----
void on_sidr_req(ProtocolContext& context, const Listeners& listeners, const Arrival& from,
                 const wire::CmSidrReq& req);
void on_sidr_rep(ProtocolContext& context, const Arrival& from, const wire::CmSidrRep& rep);

/// Sends SIDR_REP, which ends the resolution for the layer above.
void send_sidr_rep(ProtocolContext& context, Connection& connection, const wire::CmSidrRep& reply);

}  // namespace rocemu::engine::cm::resolution
