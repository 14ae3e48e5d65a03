// RoCEv2 congestion management (IBTA vol 1, annex A17.9): a switch marks packets of a queue that
// grows, the receiver of one sends a congestion notification packet (CNP) to its sender, and the
// sender slows down. On a simulated network QPs do so if its NICs have congestion control, and else
// only count marks. Everywhere else they send and count CNPs, and do not slow down, since they have
// no rate.
#pragma once

#include <cstdint>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::congestion {

/// Without a simulated network, NICs send a QP's CNPs no closer to each other; the annex leaves the
/// time to them.
inline constexpr Duration kNotificationInterval{std::chrono::microseconds(50)};

/// Looks at the mark of a packet that a connected QP received from its peer.
void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet);
/// Takes a CNP that a connected QP received from its peer.
void on_notification(TransportContext& context, QueuePair& qp);

/// Returns whether the QP's turn to send may begin: on a simulated network, while its device's port
/// has room and at the rate that congestion control allows. If not, the QP is scheduled when it
/// may.
bool may_transmit(TransportContext& context, QueuePair& qp);
/// Returns the number of packets that a turn may have. On a simulated network each turn has one, so
/// that the QPs of a device share its port packet by packet, and none is early.
uint32_t packets_of_turn(const TransportContext& context, uint32_t burst);

}  // namespace rocemu::engine::congestion
