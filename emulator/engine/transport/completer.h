// The completer of a connected QP: handles acknowledgements, NAKs, responses to READs and atomics,
// and the timers for missing ones (IBTA vol 1, 9.7.5.1, 9.7.5.2, 9.7.6). It retransmits by
// go-back-N, from the oldest unacknowledged PSN.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::completer {

void on_response(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                 const wire::OpcodeInfo& info);
void on_timer(TransportContext& context, QueuePair& qp, TimerKind kind);

/// Requests again a response that arrived while the memory for its data was not available.
void on_memory_ready(TransportContext& context, QueuePair& qp);

/// Restarts the ACK timer, or stops it if no request that asked for an acknowledgement waits for
/// one. Called after progress and after going back, and when a request is sent while the timer is
/// stopped. Sending more does not restart a running timer, since otherwise a busy sender would
/// never detect a dead peer.
void restart_timer(TransportContext& context, QueuePair& qp);

}  // namespace rocemu::engine::completer
