// The responder: checks request packets in the order that the specification requires, and executes
// them (IBTA vol 1, 9.7.4, 9.7.5, 9.9.3).
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::responder {

void on_request(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info);

/// Returns the PSN that the ACK of a duplicate SEND or WRITE names. An ACK covers all earlier
/// requests (9.7.5.1.2), so this is the PSN of the newest request. But if a READ or atomic follows
/// the duplicate, the PSN is before that request: the response to the READ or atomic may be lost
/// like the duplicate's ACK, and no ACK replaces it (9.7.5.1.3, 9.7.7.2). Linux rxe would complete
/// that request without its data. `psn` is the PSN of the duplicate. `max_queries` is the number of
/// PSNs that RecvHalf::query_psns keeps.
wire::Psn psn_for_duplicate(const RecvHalf& recv, uint32_t max_queries, wire::Psn psn);

// The following functions serve both RC and UC QPs.

/// Returns whether the payload has a valid length (IBTA vol 1, 9.7.4.1.6): all packets but the last
/// are full, a Last is not empty, and no packet exceeds the path MTU.
bool length_valid(const QueuePair& qp, const wire::OpcodeInfo& info, size_t payload);
/// Returns whether the QP allows its peer this operation (IBTA vol 1, 9.7.4.1.3).
bool operation_allowed(const QueuePair& qp, const wire::OpcodeInfo& info);
/// Raises IBV_EVENT_COMM_EST if this is the first packet of the peer on a QP in RTR.
void report_established(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::responder
