// A frame as a simulated network sees it, and as it looks after switches have changed it.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/simulated_network.h"

namespace rocemu::engine {

/// Returns the bytes that a frame takes on an Ethernet link: at least 64 with its FCS, and 20 of
/// preamble and gap (IEEE 802.3, 3.1.1, 3.2.8 and 4.4.2).
uint32_t bytes_on_wire(const Frame& frame);

/// Returns the size, flow, DSCP, ECN and TTL of the frame.
Injection injection_of(const Frame& frame);

/// Returns the frame with the mark "congestion experienced" (RFC 3168, 5).
Frame marked_copy(FramePool& pool, const Frame& frame);

/// Returns the frame as it is on a link, with a mark or without, and with that TTL. The ICRC stays
/// right: it covers neither the traffic class nor the TTL nor the checksum of IPv4 (IBTA vol 1,
/// annex A17.3.3).
Frame copy_on_wire(FramePool& pool, const Frame& frame, bool is_marked, std::optional<uint8_t> ttl);

}  // namespace rocemu::engine
