// RoCEv2 congestion management (IBTA vol 1, annex A17.9): a switch marks packets of a growing
// queue, the receiver of a marked packet sends a congestion notification packet (CNP) to its
// sender, and the sender reduces its rate. This device sends and counts CNPs; it has no rate to
// reduce.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::congestion {

/// The minimum interval between a QP's CNPs, which the annex leaves to the NIC.
inline constexpr Duration kNotificationInterval{std::chrono::microseconds(50)};

/// Handles the mark of a packet that a connected QP received from its peer.
void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet);

}  // namespace rocemu::engine::congestion
