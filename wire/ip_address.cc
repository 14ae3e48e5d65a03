#include "wire/ip_address.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>

namespace rocemu::wire {
namespace {

constexpr size_t kGroups = 8;

std::string quad_to_string(std::span<const uint8_t, 4> quad) {
  char text[sizeof "255.255.255.255"];
  std::snprintf(text, sizeof text, "%u.%u.%u.%u", quad[0], quad[1], quad[2], quad[3]);
  return text;
}

bool parse_quad(std::string_view text, std::span<uint8_t, 4> quad) {
  for (size_t i = 0; i < quad.size(); ++i) {
    const bool is_last = i + 1 == quad.size();
    const size_t dot = text.find('.');
    if ((dot == std::string_view::npos) != is_last) return false;
    const std::string_view number = text.substr(0, dot);
    if (number.size() > 1 && number[0] == '0') return false;  // octal to some, else decimal
    const char* end = number.data() + number.size();
    const auto parsed = std::from_chars(number.data(), end, quad[i]);
    if (parsed.ec != std::errc() || parsed.ptr != end) return false;
    if (!is_last) text.remove_prefix(dot + 1);
  }
  return true;
}

bool parse_group(std::string_view text, std::span<uint8_t, 2> group) {
  if (text.size() > 4) return false;
  uint16_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) return false;
  group[0] = static_cast<uint8_t>(value >> 8);
  group[1] = static_cast<uint8_t>(value);
  return true;
}

std::optional<IpAddress> parse_v6(std::string_view text) {
  IpAddress address;
  const std::span<uint8_t, 16> bytes(address.bytes);
  size_t filled = 0;
  std::optional<size_t> gap;  // where the "::" stands, in bytes

  if (text.starts_with("::")) {
    gap = 0;
    text.remove_prefix(2);
  }
  while (!text.empty()) {
    const size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (group.find('.') != std::string_view::npos) {
      if (colon != std::string_view::npos || filled > 12) return std::nullopt;
      if (!parse_quad(group, bytes.subspan(filled).first<4>())) return std::nullopt;
      filled += 4;
      break;
    }
    if (filled > 14 || !parse_group(group, bytes.subspan(filled).first<2>())) return std::nullopt;
    filled += 2;
    if (colon == std::string_view::npos) break;

    text.remove_prefix(colon + 1);
    if (text.empty()) return std::nullopt;  // ends with a single colon
    if (text[0] == ':') {
      if (gap) return std::nullopt;
      gap = filled;
      text.remove_prefix(1);
    }
  }

  if (!gap) return filled == bytes.size() ? std::optional(address) : std::nullopt;
  if (filled == bytes.size()) return std::nullopt;  // the "::" stands for nothing
  // The groups that were read after "::" belong at the end of the address.
  IpAddress spread;
  const auto before = bytes.first(*gap);
  const auto behind = bytes.subspan(*gap, filled - *gap);
  std::copy(before.begin(), before.end(), spread.bytes.begin());
  std::copy_backward(behind.begin(), behind.end(), spread.bytes.end());
  return spread;
}

}  // namespace

std::string to_string(const IpAddress& address) {
  if (address.is_v4()) return quad_to_string(std::span(address.bytes).last<4>());

  std::array<unsigned, kGroups> groups;
  for (size_t i = 0; i < kGroups; ++i) {
    groups[i] = static_cast<unsigned>(address.bytes[2 * i] << 8 | address.bytes[2 * i + 1]);
  }

  // RFC 5952, 4.2: the longest run of at least two zero groups is shortened, the first one if there
  // are several.
  size_t longest_at = kGroups;
  size_t longest = 1;
  for (size_t i = 0; i < kGroups; ++i) {
    size_t run = 0;
    while (i + run < kGroups && groups[i + run] == 0) ++run;
    if (run > longest) {
      longest_at = i;
      longest = run;
    }
  }

  std::string text;
  for (size_t i = 0; i < kGroups; ++i) {
    if (i == longest_at) {
      text += "::";
      i += longest - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    char digits[sizeof "ffff"];
    std::snprintf(digits, sizeof digits, "%x", groups[i] & 0xffff);
    text += digits;
  }
  return text;
}

std::optional<IpAddress> parse_ip_address(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return parse_v6(text);
  IpAddress address = IpAddress::from_v4(0, 0, 0, 0);
  if (!parse_quad(text, std::span(address.bytes).last<4>())) return std::nullopt;
  return address;
}

}  // namespace rocemu::wire
