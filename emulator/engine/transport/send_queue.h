// The life of send WQEs: posted, sent (requester.h), acknowledged (completer.h), reported in
// order; and what happens to those that wait when something fails or the queue drains.
#pragma once

#include <cstddef>
#include <span>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::send_queue {

/// Takes a send WQE that the client posted.
void post(TransportContext& context, QueuePair& qp, std::span<const std::byte> wqe);

/// The QP came to RTS or left SQD: start from its PSN and retry counts, or go on.
void start(TransportContext& context, QueuePair& qp);
void resume(TransportContext& context, QueuePair& qp);
/// Is there a packet that the QP's state lets go out?
bool may_send(const QueuePair& qp);

/// Completes, in order, what is done: WQEs whose PSNs are all acknowledged, and local ones that
/// have nothing before them any more.
void complete_acknowledged(TransportContext& context, QueuePair& qp);
/// The oldest WQE failed: it completes so, and the QP with it (IBTA vol 1, 10.3.1.5), or its send
/// queue, if it is unreliable.
void fail_oldest(TransportContext& context, QueuePair& qp, LocalError error);
/// A local error ends the stream at WQE `next`; those before it complete first, in order.
void stop_at_next(TransportContext& context, QueuePair& qp, LocalError error);
/// Completes every WQE with IBV_WC_WR_FLUSH_ERR.
void flush(TransportContext& context, QueuePair& qp);

void reset_retries(QueuePair& qp);

/// The QP came to SQD: raises IBV_EVENT_SQ_DRAINED if that was asked for, when the time has come.
void check_drained(TransportContext& context, QueuePair& qp);
bool drained(const QueuePair& qp);

}  // namespace rocemu::engine::send_queue
