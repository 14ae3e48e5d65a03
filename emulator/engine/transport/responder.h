// The responder: checks request packets in the specification's order and executes them (IBTA vol 1,
// 9.7.4, 9.7.5, 9.9.3).
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::responder {

void on_request(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info);

/// Returns the PSN that the ACK of the duplicate SEND or WRITE with `psn` names: that of the newest
/// request, since an ACK covers all earlier ones (9.7.5.1.2), but none of or beyond a READ or
/// atomic that follows the duplicate. The response to that READ or atomic may be lost like the
/// duplicate's ACK, and no ACK replaces it (9.7.5.1.3, 9.7.7.2): Linux rxe would complete it
/// without its data. `max_queries` is the number of PSNs that RecvHalf::query_psns keeps.
wire::Psn psn_for_duplicate(const RecvHalf& recv, uint32_t max_queries, wire::Psn psn);

// Functions for both kinds of connected QPs

/// 9.7.4.1.6: returns whether the length is valid: all packets but the last are full, a Last is not
/// empty, none exceeds the path MTU.
bool length_valid(const QueuePair& qp, const wire::OpcodeInfo& info, size_t payload);
/// 9.7.4.1.3: returns whether the QP allows its peer this operation.
bool operation_allowed(const QueuePair& qp, const wire::OpcodeInfo& info);
/// Handles the effect of any packet of the peer on a QP in RTR.
void report_established(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::responder
