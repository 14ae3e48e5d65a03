// The requester's way out: turns send WQEs into request packets (IBTA vol 1, 9.7.3). The payload is
// read from the application's memory anew each time a packet is sent.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::requester {

/// Sends one burst, and asks for another turn if there is more. Returns the frames sent, at least
/// 1 so that a caller with a budget comes to an end.
uint32_t transmit(TransportContext& context, QueuePair& qp);

/// Returns the payload bytes of a message that was posted. The sizes in a WQE come from the client:
/// never beyond what the QP has room for.
uint64_t message_length(const QueuePair& qp, uint32_t index, const abi::SendWqe& wqe);

}  // namespace rocemu::engine::requester
