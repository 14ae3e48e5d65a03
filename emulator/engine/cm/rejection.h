// REJ messages (IBTA vol 1, 12.6.7), for connections and for messages that belong to no connection
#pragma once

#include <cstdint>

#include "emulator/engine/cm/protocol_context.h"

namespace rocemu::engine::cm::rejection {

// ---- Calls of the layer above, which connection_manager.h describes ----
int reject(ProtocolContext& context, ConnectionId id, const Reject& reject);

// ---- Messages ----
void on_rej(ProtocolContext& context, const Arrival& from, const wire::CmRej& rej);

// ---- Functions that the other stages call ----
/// Sends REJ for the peer's latest message. The connection's state determines which message that
/// is.
void send(ProtocolContext& context, Connection& connection, const Reject& reject);
/// Rejects a request for which there is no connection.
void reject_request(ProtocolContext& context, const Arrival& from, const wire::CmReq& req,
                    wire::CmRejectReason reason);
/// Rejects a message that names a connection that does not exist.
void reject_unknown(ProtocolContext& context, const Arrival& from, uint32_t our_id,
                    uint32_t their_id, wire::CmRejected message);

}  // namespace rocemu::engine::cm::rejection
