#include "wire/ethernet.h"

#include <charconv>
#include <cstdio>
#include <new>

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {
namespace {

struct Layout {
  std::array<uint8_t, 6> dst;
  std::array<uint8_t, 6> src;
  Be16 ether_type;
};
static_assert(sizeof(Layout) == EthernetHeader::kSize && alignof(Layout) == 1);

}  // namespace

std::string to_string(const MacAddress& address) {
  const auto& b = address.bytes;
  char text[sizeof "00:00:00:00:00:00"];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4],
                b[5]);
  return text;
}

std::optional<MacAddress> parse_mac_address(std::string_view text) {
  MacAddress address;
  if (text.size() != 3 * address.bytes.size() - 1) return std::nullopt;
  for (size_t i = 0; i < address.bytes.size(); ++i) {
    if (i > 0 && text[3 * i - 1] != ':') return std::nullopt;
    const char* digits = text.data() + 3 * i;
    const auto parsed = std::from_chars(digits, digits + 2, address.bytes[i], 16);
    if (parsed.ec != std::errc() || parsed.ptr != digits + 2) return std::nullopt;
  }
  return address;
}

EthernetHeader parse_ethernet(std::span<const uint8_t, EthernetHeader::kSize> bytes) {
  const auto layout = load<Layout>(bytes);
  return {.dst = {layout.dst}, .src = {layout.src}, .ether_type = layout.ether_type.get()};
}

void emit(const EthernetHeader& header, std::span<uint8_t, EthernetHeader::kSize> bytes) {
  ::new (bytes.data()) Layout{
      .dst = header.dst.bytes, .src = header.src.bytes, .ether_type = Be16(header.ether_type)};
}

}  // namespace rocemu::wire
