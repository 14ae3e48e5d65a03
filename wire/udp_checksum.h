// The UDP checksum over IPv6, for frames that a reader checks: a capture. Receivers of RoCEv2 take
// 0, which rxe and NICs send over IPv6 as RFC 6935 permits for tunnels; analyzers, which go by
// RFC 8200, 8.1, call it illegal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rocemu::wire {

/// Where a frame's UDP checksum over IPv6 is, in network byte order.
inline constexpr size_t kIpv6UdpChecksumAt = 60;

/// Returns the checksum that a UDP packet over IPv6 lacks, given its frame from the Ethernet header
/// on. Nothing for all other frames: over IPv4, 0 means none (RFC 768).
std::optional<uint16_t> missing_udp_checksum(std::span<const uint8_t> frame);

}  // namespace rocemu::wire
