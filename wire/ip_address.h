// An IPv4 or IPv6 address in the one form that GIDs have: 16 bytes, IPv4 as ::ffff:a.b.c.d.
#pragma once

#include <array>
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
    for (size_t i = 0; i < 10; ++i) {
      if (bytes[i] != 0) return false;
    }
    return bytes[10] == 0xff && bytes[11] == 0xff;
  }

  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

// "10.7.0.1" for an IPv4 address, RFC 5952 text otherwise.
std::string to_string(const IpAddress& address);

// Dotted quads and every RFC 4291 form; no zone, no prefix length, no leading zeros in a quad.
std::optional<IpAddress> parse_ip_address(std::string_view text);

}  // namespace rocemu::wire
