// The responder: checks request packets in the specification's order and has them carried out
// (IBTA vol 1, 9.7.4, 9.7.5, 9.9.3).
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::responder {

void on_request(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info);

/// Returns the PSN that the ACK of the duplicate SEND or WRITE with `psn` names: that of the newest
/// request, since an ACK covers all earlier ones (9.7.5.1.2), but none of or beyond a READ or
/// atomic that follows the duplicate. The response to that READ or atomic may be lost as the
/// duplicate's ACK was, and no ACK stands for it (9.7.5.1.3, 9.7.7.2): Linux rxe would complete it
/// without its data. `max_queries` is how many RecvHalf::query_psns keeps.
wire::Psn psn_for_duplicate(const RecvHalf& recv, uint32_t max_queries, wire::Psn psn);

// What connected QPs of either kind have in common.

/// 9.7.4.1.6: all packets but the last are full, a Last is not empty, none exceeds the path MTU.
bool length_valid(const QueuePair& qp, const wire::OpcodeInfo& info, size_t payload);
/// 9.7.4.1.3: does the QP allow its peer this operation at all?
bool operation_allowed(const QueuePair& qp, const wire::OpcodeInfo& info);
/// What the peer's packet does to a QP in RTR, whatever it is.
void report_established(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::responder
