// An IPv4 or IPv6 address in the form of a GID: 16 bytes, IPv4 as ::ffff:a.b.c.d.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rocemu::wire {

struct IpAddress {
  std::array<uint8_t, 16> bytes{};

  static constexpr IpAddress from_v4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
    return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
  }

  constexpr bool is_v4() const {
    constexpr auto kPrefix = std::bit_cast<std::array<uint32_t, 4>>(from_v4(0, 0, 0, 0).bytes);
    const auto words = std::bit_cast<std::array<uint32_t, 4>>(bytes);
    return words[0] == kPrefix[0] && words[1] == kPrefix[1] && words[2] == kPrefix[2];
  }

  /// Returns whether the address is in 224.0.0.0/4 or ff00::/8.
  constexpr bool is_multicast() const { return is_v4() ? bytes[12] >> 4 == 0xe : bytes[0] == 0xff; }

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

// Returns the address as text: dotted, such as "10.7.0.1", for an IPv4 address, and in the form of
// RFC 5952 otherwise.
std::string to_string(const IpAddress& address);

// Parses dotted quads and every form of RFC 4291. Refuses zones, prefix lengths, and leading zeros
// in a quad.
std::optional<IpAddress> parse_ip_address(std::string_view text);

}  // namespace rocemu::wire
