// The send path of the requester: each turn sends WQEs as request packets (IBTA vol 1, 9.7.3). The
// payload is read from the application's memory again each time a packet is sent.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::requester {

/// Sends one burst, and schedules another turn if there is more. Returns the number of frames sent,
/// at least 1 so that a caller with a budget ends.
uint32_t transmit(TransportContext& context, QueuePair& qp);

/// Returns the payload bytes of a posted message. The sizes in a WQE come from the client, and are
/// limited to the QP's capacities.
uint64_t message_length(const QueuePair& qp, uint32_t index, const abi::SendWqe& wqe);

}  // namespace rocemu::engine::requester
