// The IPv4 and IPv6 headers that RoCEv2 uses: UDP inside, no fragments
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/ip_address.h"
#include "wire/result.h"

namespace rocemu::wire {

inline constexpr uint8_t kIpProtocolUdp = 17;

// Returns the version nibble, or 0 if there are no bytes.
constexpr uint8_t ip_version(std::span<const uint8_t> ip_packet) {
  return ip_packet.empty() ? uint8_t{0} : static_cast<uint8_t>(ip_packet[0] >> 4);
}

struct Ipv4Header {
  static constexpr size_t kSize = 20;  // without options: skipped on parse, never emitted

  uint8_t header_size = kSize;  // as parsed, including options; emit writes 20
  uint8_t traffic_class = 0;    // DSCP and ECN
  uint16_t total_length = 0;    // includes the header
  uint16_t identification = 0;
  bool dont_fragment = true;
  uint8_t hop_limit = 64;
  uint8_t protocol = kIpProtocolUdp;
  IpAddress src = IpAddress::from_v4(0, 0, 0, 0);
  IpAddress dst = IpAddress::from_v4(0, 0, 0, 0);

  friend constexpr bool operator==(const Ipv4Header&, const Ipv4Header&) = default;
};

struct Ipv6Header {
  static constexpr size_t kSize = 40;

  uint8_t traffic_class = 0;
  uint32_t flow_label = 0;      // 20 bits
  uint16_t payload_length = 0;  // the bytes after these 40 bytes
  uint8_t next_header = kIpProtocolUdp;
  uint8_t hop_limit = 64;
  IpAddress src{};
  IpAddress dst{};

  friend constexpr bool operator==(const Ipv6Header&, const Ipv6Header&) = default;
};

// The following two functions parse the header of a whole packet, possibly followed by link
// padding, and check that the lengths in the header are within the packet. Any protocol is
// accepted; a fragment is not.
Result<Ipv4Header> parse_ipv4(std::span<const uint8_t> ip_packet);
Result<Ipv6Header> parse_ipv6(std::span<const uint8_t> ip_packet);

void emit(const Ipv4Header& header, std::span<uint8_t, Ipv4Header::kSize> bytes);  // with checksum
void emit(const Ipv6Header& header, std::span<uint8_t, Ipv6Header::kSize> bytes);

}  // namespace rocemu::wire
