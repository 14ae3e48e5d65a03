// The requester: the half of a connected QP that turns send WQEs into request packets and
// acknowledgements into completions (IBTA vol 1, 9.7.3 to 9.7.7). Go-back-N from the oldest
// unacknowledged PSN; the payload is read from the application's memory anew each time.
#pragma once

#include <cstddef>
#include <span>

#include "emulator/engine/fabric.h"

namespace rocemu::engine::requester {

/// Takes a send WQE that the client posted.
void post(Fabric& fabric, QueuePair& qp, std::span<const std::byte> wqe);

/// Sends one burst, and asks for another turn if there is more. Returns the frames sent, at least
/// 1 so that a caller with a budget comes to an end.
uint32_t transmit(Fabric& fabric, QueuePair& qp);

void on_response(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                 const wire::OpcodeInfo& info);
void on_timer(Fabric& fabric, QueuePair& qp, TimerKind kind);

/// The QP came to RTS or left SQD: start from its PSN and retry counts, or go on.
void start(Fabric& fabric, QueuePair& qp);
void resume(Fabric& fabric, QueuePair& qp);
/// The QP came to SQD: raises IBV_EVENT_SQ_DRAINED if that was asked for, when the time has come.
void check_drained(Fabric& fabric, QueuePair& qp);
bool drained(const QueuePair& qp);

/// Completes every WQE with IBV_WC_WR_FLUSH_ERR.
void flush(Fabric& fabric, QueuePair& qp);

}  // namespace rocemu::engine::requester
