// The life of send WQEs: posted, sent (requester.h), acknowledged (completer.h), reported in order.
// It also handles the waiting WQEs when a request fails or the queue drains.
#pragma once

#include <cstddef>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::send_queue {

/// Takes a send WQE that the client posted.
void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe);

/// Called when the QP enters RTS or leaves SQD: starts with its PSN and retry counts, or continues.
void start(TransportContext& context, QueuePair& qp);
void resume(TransportContext& context, QueuePair& qp);
/// Returns whether there is a packet that the QP's state permits to send.
bool may_send(const QueuePair& qp);

/// Completes finished requests in order: WQEs whose PSNs are all acknowledged, and local ones
/// without an unfinished WQE before them.
void complete_acknowledged(TransportContext& context, QueuePair& qp);
/// Fails the oldest WQE, and the QP with it (IBTA vol 1, 10.3.1.5), or the send queue of an
/// unreliable QP.
void fail_oldest(TransportContext& context, QueuePair& qp, LocalError error);
/// Stops the queue at WQE `next` for a local error. Earlier WQEs complete first, in order.
void stop_at_next(TransportContext& context, QueuePair& qp, LocalError error);
/// Completes every WQE with IBV_WC_WR_FLUSH_ERR.
void flush(TransportContext& context, QueuePair& qp);

void reset_retries(QueuePair& qp);

/// Called when the QP enters SQD: raises IBV_EVENT_SQ_DRAINED, if requested, when the queue is
/// drained.
void check_drained(TransportContext& context, QueuePair& qp);
bool drained(const QueuePair& qp);

}  // namespace rocemu::engine::send_queue
