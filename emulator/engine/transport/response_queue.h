// The queue of responses that the responder of a connected QP has yet to send, in the order of the
// requests (IBTA vol 1, 9.7.5.1): acknowledgements, NAKs, READ data, responses to atomics.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::response_queue {

/// Returns whether the responder has resources for another READ, atomic, ATOMIC WRITE or FLUSH. At
/// most max_dest_rd_atomic of these requests may be unanswered (IBTA vol 1, 9.7.4.1.5).
bool has_room(const QueuePair& qp);

/// Makes has_room() true for a new request, if necessary by discarding repeated responses. A
/// requester has at most max_dest_rd_atomic such requests outstanding, and completes them in order.
/// If it sends a new request, it has therefore received the oldest responses, and need not get them
/// again: its retransmission and the first response crossed. Returns false if there is still no
/// room.
bool make_room(QueuePair& qp);

/// Adds a response to the queue.
void queue(TransportContext& context, QueuePair& qp, const Response& response);

/// Queues the response to a duplicate READ, atomic, ATOMIC WRITE or FLUSH at the position of its
/// PSN, and removes queued responses for the same PSNs. Several duplicates may be queued at once,
/// because the requester repeats everything after a lost response. Ignores a response that extends
/// beyond the requests received so far, or for which there is no room.
void queue_again(TransportContext& context, QueuePair& qp, const Response& response);

/// Sends an acknowledgement, at once unless an earlier response must be sent first. An
/// acknowledgement covers all earlier ones, so only the newest waits.
void answer(TransportContext& context, QueuePair& qp, wire::Psn psn, uint8_t syndrome);

/// Sends the acknowledgement that waits for a later one to cover it. Called when the QP is about to
/// become silent, because its client already has the completions of the acknowledged messages. An
/// acknowledgement that waits behind the data of a READ is not sent, and neither is that data.
void flush_held_ack(TransportContext& context, QueuePair& qp);

/// Sends a final NAK, and fails the QP. Responses to earlier requests are sent first; until then
/// the QP ignores further requests.
void refuse(TransportContext& context, QueuePair& qp, wire::Psn psn, Verdict verdict);

/// Sends one burst of the waiting responses, and schedules another quantum if there are more.
/// Returns the number of frames sent.
uint32_t transmit(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::response_queue
