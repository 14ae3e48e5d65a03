// The responder: the half of a connected QP that checks request packets, fills receive buffers and
// acknowledges (IBTA vol 1, 9.7.4, 9.7.5, 9.9.3).
#pragma once

#include <cstddef>
#include <span>

#include "emulator/engine/fabric.h"

namespace rocemu::engine::responder {

/// Takes a receive WQE that the client posted.
void post(Fabric& fabric, QueuePair& qp, std::span<const std::byte> wqe);

void on_request(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info);

/// Sends one burst of what waits to be sent, and asks for another turn if there is more. Returns
/// the frames sent.
uint32_t transmit(Fabric& fabric, QueuePair& qp);

/// Completes every WQE with IBV_WC_WR_FLUSH_ERR.
void flush(Fabric& fabric, QueuePair& qp);

}  // namespace rocemu::engine::responder
