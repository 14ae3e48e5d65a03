// The UDP checksum over IPv6 for captured frames. Receivers of RoCEv2 accept 0, which rxe and NICs
// send over IPv6 as RFC 6935 permits for tunnels; analyzers, which follow RFC 8200, 8.1, report 0
// as illegal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rocemu::wire {

/// The offset of the UDP checksum, which is in network byte order, in a frame over IPv6.
inline constexpr size_t kIpv6UdpChecksumAt = 60;

/// Returns the checksum that a UDP packet over IPv6 lacks, given its frame from the Ethernet header
/// on. Returns nothing for other frames: over IPv4, 0 means no checksum (RFC 768).
std::optional<uint16_t> missing_udp_checksum(std::span<const uint8_t> frame);

}  // namespace rocemu::wire
