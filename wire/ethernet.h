// The Ethernet II header, without VLAN tags.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rocemu::wire {

struct MacAddress {
  std::array<uint8_t, 6> bytes{};

  friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) = default;
};

std::string to_string(const MacAddress& address);  // "6a:7f:45:ec:80:8e"
std::optional<MacAddress> parse_mac_address(std::string_view text);

inline constexpr uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr uint16_t kEtherTypeIpv6 = 0x86dd;

struct EthernetHeader {
  static constexpr size_t kSize = 14;

  MacAddress dst{};
  MacAddress src{};
  uint16_t ether_type = 0;

  friend constexpr bool operator==(const EthernetHeader&, const EthernetHeader&) = default;
};

EthernetHeader parse_ethernet(std::span<const uint8_t, EthernetHeader::kSize> bytes);
void emit(const EthernetHeader& header, std::span<uint8_t, EthernetHeader::kSize> bytes);

}  // namespace rocemu::wire
