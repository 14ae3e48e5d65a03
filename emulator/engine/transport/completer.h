// What a connected QP's requester hears: acknowledgements, NAKs, answers to READs and atomics, and
// its timers when it hears nothing (IBTA vol 1, 9.7.5.1, 9.7.5.2, 9.7.6). Go-back-N from the oldest
// unacknowledged PSN.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::completer {

void on_response(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                 const wire::OpcodeInfo& info);
void on_timer(TransportContext& context, QueuePair& qp, TimerKind kind);

/// Asks again for an answer that there was no memory for.
void on_memory_ready(TransportContext& context, QueuePair& qp);

/// The timer runs while a request that asked for an acknowledgement waits for one. Progress and
/// going back restart it; sending more does not, or a busy sender would never notice a dead peer.
void restart_timer(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::completer
