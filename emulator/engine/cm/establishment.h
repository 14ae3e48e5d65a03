// The establishment of a connection (IBTA vol 1, 12.9): REQ, REP and RTU, with MRA for a side that
// needs more time
#pragma once

#include <cstdint>
#include <span>

#include "emulator/engine/cm/listeners.h"
#include "emulator/engine/cm/protocol_context.h"
#include "wire/result.h"

namespace rocemu::engine::cm::establishment {

// ---- Calls of the layer above, which connection_manager.h describes ----
wire::Result<ConnectionId, int> connect(ProtocolContext& context, const Connect& connect);
int accept(ProtocolContext& context, ConnectionId id, const Accept& accept);
int ready(ProtocolContext& context, ConnectionId id, std::span<const uint8_t> private_data);
int delay(ProtocolContext& context, ConnectionId id, uint8_t service_timeout,
          std::span<const uint8_t> private_data);
int notify_established(ProtocolContext& context, ConnectionId id);

// ---- Messages ----
void on_req(ProtocolContext& context, const Listeners& listeners, const Arrival& from,
            const wire::CmReq& req);
void on_rep(ProtocolContext& context, const Arrival& from, const wire::CmRep& rep);
void on_rtu(ProtocolContext& context, const Arrival& from, const wire::CmRtu& rtu);
void on_mra(ProtocolContext& context, const Arrival& from, const wire::CmMra& mra);

}  // namespace rocemu::engine::cm::establishment
