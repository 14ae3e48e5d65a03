// The UDP header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rocemu::wire {

inline constexpr uint16_t kRoceUdpPort = 4791;

struct UdpHeader {
  static constexpr size_t kSize = 8;

  uint16_t src_port = 0;
  uint16_t dst_port = kRoceUdpPort;
  uint16_t length = kSize;  // includes the header
  uint16_t checksum =
      0;  // 0 = none, which RoCEv2 allows over IPv6 too; neither made nor checked here

  friend constexpr bool operator==(const UdpHeader&, const UdpHeader&) = default;
};

UdpHeader parse_udp(std::span<const uint8_t, UdpHeader::kSize> bytes);
void emit(const UdpHeader& header, std::span<uint8_t, UdpHeader::kSize> bytes);

}  // namespace rocemu::wire
