// RoCEv2 congestion management (IBTA vol 1, annex A17.9). A switch marks the packets of a growing
// queue, the receiver of a marked packet sends a congestion notification packet (CNP) to the
// packet's sender, and that sender reduces its rate. On a simulated network, QPs do so if the NICs
// of the network have congestion control; otherwise they only count marks. Without a simulated
// network, QPs send and count CNPs, but do not reduce their rate.
#pragma once

#include <cstdint>

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::congestion {

/// The minimum interval between two CNPs of a QP without a simulated network. The annex leaves this
/// interval to the NIC.
inline constexpr Duration kNotificationInterval{std::chrono::microseconds(50)};

/// Counts the mark of a packet that a connected QP received from its peer, and sends a CNP if one
/// is due.
void on_packet(TransportContext& context, QueuePair& qp, const wire::Packet& packet);
/// Handles a CNP that a connected QP received from its peer.
void on_notification(TransportContext& context, QueuePair& qp);

/// Returns whether the QP may begin a quantum. On a simulated network, the device's port must
/// have room, and the rate of congestion control must allow it. If the quantum may not begin
/// yet, the QP is scheduled for the time when it may.
bool may_transmit(TransportContext& context, QueuePair& qp);
/// Returns the maximum number of packets in a quantum. On a simulated network each quantum has one
/// packet, so that the QPs of a device share its port packet by packet, and no packet is sent too
/// early.
uint32_t packets_of_quantum(const TransportContext& context, uint32_t burst);

}  // namespace rocemu::engine::congestion
