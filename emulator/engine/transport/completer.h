// The completer of a connected QP: handles acknowledgements, NAKs, responses to READs and atomics,
// and the timers for missing ones (IBTA vol 1, 9.7.5.1, 9.7.5.2, 9.7.6). Go-back-N from the oldest
// unacknowledged PSN.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::completer {

void on_response(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                 const wire::OpcodeInfo& info);
void on_timer(TransportContext& context, QueuePair& qp, TimerKind kind);

/// Requests a response again for which there was no memory.
void on_memory_ready(TransportContext& context, QueuePair& qp);

/// The timer runs while a request that asked for an acknowledgement waits for one. Progress and
/// going back restart it; sending more does not, since a busy sender would never detect a dead
/// peer.
void restart_timer(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::completer
