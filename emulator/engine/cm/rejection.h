// REJ (IBTA vol 1, 12.6.7), for connections and for messages that belong to none
#pragma once

#include <cstdint>

#include "emulator/engine/cm/protocol_context.h"

namespace rocemu::engine::cm::rejection {

// ---- Calls of the layer above: see ConnectionManager ----
int reject(ProtocolContext& context, ConnectionId id, const Reject& reject);

// ---- Messages ----
void on_rej(ProtocolContext& context, const Arrival& from, const wire::CmRej& rej);

// ---- For the other stages ----
/// Sends REJ for the latest message of the peer, which the connection's state determines.
void send(ProtocolContext& context, Connection& connection, const Reject& reject);
/// Rejects a request for which there is no connection.
void reject_request(ProtocolContext& context, const Arrival& from, const wire::CmReq& req,
                    wire::CmRejectReason reason);
/// Rejects a message that names a connection that does not exist.
void reject_unknown(ProtocolContext& context, const Arrival& from, uint32_t our_id,
                    uint32_t their_id, wire::CmRejected message);

}  // namespace rocemu::engine::cm::rejection
