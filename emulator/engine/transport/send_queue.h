// The life of send WQEs, which are posted, sent (requester.h), acknowledged (completer.h) and
// reported, in order. This file also handles the waiting WQEs when a request fails or the queue
// drains.
#pragma once

#include <cstddef>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::send_queue {

/// Adds a send WQE that the client posted.
void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe);

/// Both functions let the queue send. start() is called when the QP enters RTS, and sets the
/// starting PSN and the retry counts; resume() is called when the QP leaves SQD or SQE.
void start(TransportContext& context, QueuePair& qp);
void resume(TransportContext& context, QueuePair& qp);
/// Returns whether there is a packet to send and the QP's state permits sending it.
bool may_send(const QueuePair& qp);

/// Completes finished requests in order. A request is finished if all of its PSNs are acknowledged
/// or, if it is local, no unfinished WQE precedes it.
void complete_acknowledged(TransportContext& context, QueuePair& qp);
/// Fails the oldest WQE. Also fails the QP (IBTA vol 1, 10.3.1.5) or, if the QP is unreliable, its
/// send queue.
void fail_oldest(TransportContext& context, QueuePair& qp, LocalError error);
/// Stops the queue at WQE `next`, because of a local error. Earlier WQEs complete first, in order.
void stop_at_next(TransportContext& context, QueuePair& qp, LocalError error);
/// Completes every WQE with IBV_WC_WR_FLUSH_ERR.
void flush(TransportContext& context, QueuePair& qp);

void reset_retries(QueuePair& qp);

/// Raises IBV_EVENT_SQ_DRAINED once the send queue of a QP in SQD is drained, if the program
/// requested the event.
void check_drained(TransportContext& context, QueuePair& qp);
bool drained(const QueuePair& qp);

}  // namespace rocemu::engine::send_queue
