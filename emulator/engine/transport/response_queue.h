// The queue of the responses that a connected QP's responder has yet to send, in the order of the
// requests (IBTA vol 1, 9.7.5.1): acknowledgements, NAKs, READ data, responses to atomics.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::response_queue {

/// Returns whether the responder has resources for another READ, atomic, ATOMIC WRITE or FLUSH:
/// unanswered ones are limited to max_dest_rd_atomic (IBTA vol 1, 9.7.4.1.5).
bool has_room(const QueuePair& qp);

/// Makes has_room() true for a new request, if necessary by discarding repeated responses. A
/// requester has no more requests at once than that limit, and completes them in order. A requester
/// that sends a new request therefore has the oldest responses, and repeating them is useless: its
/// retransmission and the first response crossed.
bool make_room(QueuePair& qp);

/// Adds a response to the queue.
void queue(TransportContext& context, QueuePair& qp, const Response& response);

/// Queues the response to a duplicate READ, atomic, ATOMIC WRITE or FLUSH at the position of its
/// PSN, replacing queued responses for the same PSNs. The requester repeats everything after a lost
/// response, so several duplicates may be queued at once; they do not replace each other. Ignores a
/// response that extends beyond the requests so far, or for which there is no room.
void queue_again(TransportContext& context, QueuePair& qp, const Response& response);

/// Sends an acknowledgement, at once unless an earlier response must be sent first. A waiting
/// acknowledgement covers those before it, so only the newest waits.
void answer(TransportContext& context, QueuePair& qp, wire::Psn psn, uint8_t syndrome);

/// Sends the acknowledgement that waits to be joined with a later one, since the QP is about to
/// become silent: its client has the completions of those messages already. An acknowledgement that
/// waits for the data of a READ is lost with that data.
void settle(TransportContext& context, QueuePair& qp);

/// Sends a final NAK and ends the QP. Responses to earlier requests are sent first; until then the
/// QP ignores further requests.
void refuse(TransportContext& context, QueuePair& qp, wire::Psn psn, Verdict verdict);

/// Sends one burst of the waiting responses, and schedules another turn if there is more. Returns
/// the number of frames sent.
uint32_t transmit(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::response_queue
