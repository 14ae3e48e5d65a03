// RoCEv2 congestion management (IBTA vol 1, annex A17.9): a switch marks packets of a growing
// queue, the receiver of a marked packet sends a congestion notification packet (CNP) to its
// sender, and the sender reduces its rate. On a simulated network QPs do so if its NICs have
// congestion control, and otherwise only count marks. Everywhere else they send and count CNPs, and
// have no rate to reduce.
#pragma once

#include <cstdint>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::congestion {

/// The minimum interval between a QP's CNPs without a simulated network, which the annex leaves to
/// the NIC.
inline constexpr Duration kNotificationInterval{std::chrono::microseconds(50)};

/// Handles the mark of a packet that a connected QP received from its peer.
void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet);
/// Takes a CNP that a connected QP received from its peer.
void on_notification(TransportContext& context, QueuePair& qp);

/// Returns whether the QP's turn to send may begin. On a simulated network this requires room at
/// the device's port, and the rate that congestion control allows. If the turn may not begin yet,
/// the QP is scheduled for the time when it may.
bool may_transmit(TransportContext& context, QueuePair& qp);
/// Returns the number of packets that a turn may have. On a simulated network each turn has one, so
/// that the QPs of a device share its port packet by packet, and none is early.
uint32_t packets_of_turn(const TransportContext& context, uint32_t burst);

}  // namespace rocemu::engine::congestion
