// The send path of the requester. Each quantum sends WQEs as request packets (IBTA vol 1, 9.7.3).
// The payload is read from the application's memory each time a packet is sent, also for a
// retransmission.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::requester {

/// Sends one burst, and schedules another quantum if there is more to send. Returns the number of
/// frames sent, but at least 1, so that the caller's loop, which counts frames, ends.
uint32_t transmit(TransportContext& context, QueuePair& qp);

/// Returns the number of payload bytes of a posted message. The sizes in a WQE come from the
/// client, so they are limited to the QP's capacities.
uint64_t message_length(const QueuePair& qp, uint32_t index, const abi::SendWqe& wqe);

}  // namespace rocemu::engine::requester
