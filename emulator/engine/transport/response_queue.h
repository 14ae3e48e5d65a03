// The queue of what a connected QP's responder still has to say, in the order of the requests
// (IBTA vol 1, 9.7.5.1): acknowledgements, NAKs, READ data, answers to atomics.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::response_queue {

/// True while the responder has resources for one more READ, atomic, ATOMIC WRITE or FLUSH: those
/// that are not answered yet are limited to max_dest_rd_atomic (IBTA vol 1, 9.7.4.1.5).
bool has_room(const QueuePair& qp);

/// For a new request: has_room(), if need be without the answers that are repeated. A requester has
/// no more requests at once than that limit, and completes them in order. So one that makes a new
/// one has the oldest answers, and what is still to be repeated of them is of no use: its own
/// repeat and our first answer had met.
bool make_room(QueuePair& qp);

/// Adds one to the queue.
void queue(TransportContext& context, QueuePair& qp, const Response& response);

/// Queues the response to a duplicate READ, atomic, ATOMIC WRITE or FLUSH where its PSN belongs, in
/// place of what is queued for the same PSNs. The requester repeats all that follows a lost
/// response, so several duplicates may be queued at once; none takes the place of another. Ignores
/// a response that reaches beyond the requests so far, or for which there is no room.
void queue_again(TransportContext& context, QueuePair& qp, const Response& response);

/// An acknowledgement, at once unless something is to go before it. One that waits stands for those
/// before it, so that only the newest waits.
void answer(TransportContext& context, QueuePair& qp, wire::Psn psn, uint8_t syndrome);

/// Sends the acknowledgement that waits to be joined with a later one, since the QP is about to
/// fall silent: its client has the completions of those messages already. What waits behind the
/// data of a READ is lost with it.
void settle(TransportContext& context, QueuePair& qp);

/// NAK for good, and the end of the QP. Answers to earlier requests go first; until then the QP
/// hears nothing more.
void refuse(TransportContext& context, QueuePair& qp, wire::Psn psn, Verdict verdict);

/// Sends one burst of what waits to be sent, and asks for another turn if there is more. Returns
/// the frames sent.
uint32_t transmit(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::response_queue
