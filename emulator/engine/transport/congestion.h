// RoCEv2 congestion management (IBTA vol 1, annex A17.9): a switch marks packets of a queue that
// grows, the receiver of one sends a congestion notification packet (CNP) to its sender, and the
// sender slows down. This device sends and counts CNPs; it does not slow down, since it has no
// rate.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::congestion {

/// NICs send a QP's CNPs no closer to each other; the annex leaves the time to them.
inline constexpr Duration kNotificationInterval{std::chrono::microseconds(50)};

/// Looks at the mark of a packet that a connected QP received from its peer.
void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet);

}  // namespace rocemu::engine::congestion
