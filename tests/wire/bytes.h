// Helpers with which tests write and compare bytes.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/packet.h"
#include "wire/print.h"
#include "wire/result.h"

namespace rocemu::wire {

using ByteVector = std::vector<uint8_t>;

// Converts a text such as "45 00 01ff" to bytes. Spaces in it are ignored.
inline ByteVector from_hex(std::string_view text) {
  ByteVector bytes;
  unsigned value = 0;
  bool half = false;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    const std::string_view digits = "0123456789abcdef";
    const size_t digit = digits.find(c);
    if (digit == std::string_view::npos) ADD_FAILURE() << "not a hex digit: " << c;
    value = value << 4 | static_cast<unsigned>(digit);
    if (half) bytes.push_back(static_cast<uint8_t>(value));
    half = !half;
  }
  EXPECT_FALSE(half) << "an odd number of digits";
  return bytes;
}

// The bytes that a buffer contains before something is emitted into it.
inline constexpr uint8_t kDirt = 0xa5;

inline ByteVector emitted(const Packet& packet) {
  ByteVector frame(frame_size(packet, packet.payload.size()), kDirt);
  EXPECT_EQ(emit_frame(packet, frame), frame.size());
  return frame;
}

// Corrects the lengths and the checksum of an IPv4 or IPv6 frame that was shortened or extended, if
// the headers are still complete.
inline void patch_lengths(std::span<uint8_t> frame) {
  const auto put16 = [&](size_t at, size_t value) {
    if (at + 2 > frame.size()) return;
    frame[at] = static_cast<uint8_t>(value >> 8);
    frame[at + 1] = static_cast<uint8_t>(value);
  };
  if (frame.size() <= 14) return;
  const bool is_v4 = frame[14] >> 4 == 4;
  const size_t ip_header = is_v4 ? size_t{4} * (frame[14] & 0xf) : 40;
  const size_t udp_at = 14 + ip_header;
  if (frame.size() < udp_at) return;
  put16(udp_at + 4, frame.size() - udp_at);
  if (!is_v4) {
    put16(18, frame.size() - udp_at);
    return;
  }
  put16(16, frame.size() - 14);
  put16(24, 0);
  uint32_t sum = 0;
  for (size_t at = 14; at < udp_at; at += 2)
    sum += static_cast<uint32_t>(frame[at] << 8 | frame[at + 1]);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  put16(24, ~sum & 0xffff);
}

// Prints an error for GoogleTest's messages.
inline void PrintTo(ParseError error, std::ostream* out) {
  *out << name(error);
}
inline void PrintTo(Psn psn, std::ostream* out) {
  *out << "psn " << psn.value();
}
inline void PrintTo(const Packet& packet, std::ostream* out) {
  *out << to_string(packet);
}
inline void PrintTo(const IpAddress& address, std::ostream* out) {
  *out << to_string(address);
}
inline void PrintTo(const MacAddress& address, std::ostream* out) {
  *out << to_string(address);
}

}  // namespace rocemu::wire
