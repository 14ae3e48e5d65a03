// Describes frames to a simulated network, and changes them as switches do.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/simulated_network.h"

namespace rocemu::engine {

/// Returns the number of bytes that a frame takes on an Ethernet link: at least 64 with its FCS,
/// and 20 more for preamble and gap (IEEE 802.3, 3.1.1, 3.2.8 and 4.4.2).
uint32_t bytes_on_wire(const Frame& frame);

/// Returns what the network must know about the frame: its size, flow, DSCP, ECN and TTL.
Injection injection_of(const Frame& frame);

/// Returns a copy of the frame that is marked "congestion experienced" (RFC 3168, 5).
Frame marked_copy(FramePool& pool, const Frame& frame);

/// Returns a copy of the frame as it looks on a link, marked or not, and with that TTL. The ICRC
/// stays correct, because it does not cover the traffic class, TTL and checksum of IPv4 (IBTA vol
/// 1, annex A17.3.3).
Frame copy_on_wire(FramePool& pool, const Frame& frame, bool is_marked, std::optional<uint8_t> ttl);

}  // namespace rocemu::engine
