// What a connected QP's requester hears: acknowledgements, NAKs, answers to READs and atomics, and
// its timers when it hears nothing (IBTA vol 1, 9.7.5.1, 9.7.5.2, 9.7.6). Go-back-N from the oldest
// unacknowledged PSN.
#pragma once

#include "emulator/engine/fabric.h"

namespace rocemu::engine::completer {

void on_response(Fabric& fabric, QueuePair& qp, const wire::Packet& packet,
                 const wire::OpcodeInfo& info);
void on_timer(Fabric& fabric, QueuePair& qp, TimerKind kind);

/// Asks again for an answer that there was no memory for.
void on_memory_ready(Fabric& fabric, QueuePair& qp);

/// The timer runs while a request that asked for an acknowledgement waits for one. Progress and
/// going back restart it; sending more does not, or a busy sender would never notice a dead peer.
void restart_timer(Fabric& fabric, QueuePair& qp);

}  // namespace rocemu::engine::completer
