#include "wire/ip.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {
namespace {

constexpr uint16_t kDontFragment = 0x4000;
constexpr uint16_t kMoreFragmentsOrOffset = 0x3fff;
constexpr uint8_t kIpv6FragmentHeader = 44;
constexpr uint8_t kVersionAndWords = 4 << 4 | Ipv4Header::kSize / 4;

struct Ipv4Layout {
  uint8_t version_and_words;  // 4 bits each; the header length in units of 4 bytes
  uint8_t traffic_class;
  Be16 total_length;
  Be16 identification;
  Be16 flags_and_offset;
  uint8_t hop_limit;
  uint8_t protocol;
  Be16 checksum;
  std::array<uint8_t, 4> src;
  std::array<uint8_t, 4> dst;
};
static_assert(sizeof(Ipv4Layout) == Ipv4Header::kSize && alignof(Ipv4Layout) == 1);

struct Ipv6Layout {
  Be32 version_class_flow;  // 4, 8 and 20 bits
  Be16 payload_length;
  uint8_t next_header;
  uint8_t hop_limit;
  std::array<uint8_t, 16> src;
  std::array<uint8_t, 16> dst;
};
static_assert(sizeof(Ipv6Layout) == Ipv6Header::kSize && alignof(Ipv6Layout) == 1);

// Returns the checksum of RFC 1071. Over a header that includes its checksum it is zero. `bytes`
// are whole 32-bit words; the sum of words in any byte order is the sum in network order with
// swapped bytes (RFC 1071, 2. B).
uint16_t internet_checksum(std::span<const uint8_t> bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i + sizeof(uint32_t) <= bytes.size(); i += sizeof(uint32_t)) {
    uint32_t word;
    std::memcpy(&word, &bytes[i], sizeof word);
    sum += word;
  }
  sum = (sum & 0xffff'ffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  const auto folded = static_cast<uint16_t>(~sum);
  std::array<uint8_t, 2> in_order;
  std::memcpy(in_order.data(), &folded, sizeof folded);
  return static_cast<uint16_t>(in_order[0] << 8 | in_order[1]);
}

uint32_t sum_of_v4(const IpAddress& address) {
  const auto& bytes = address.bytes;
  return (uint32_t{bytes[12]} << 8 | bytes[13]) + (uint32_t{bytes[14]} << 8 | bytes[15]);
}

// Returns internet_checksum() of the emitted header, computed from the values.
uint16_t checksum_of(const Ipv4Header& header, uint16_t flags) {
  uint32_t sum = kVersionAndWords << 8 | header.traffic_class;
  sum += header.total_length;
  sum += header.identification;
  sum += flags;
  sum += uint32_t{header.hop_limit} << 8 | header.protocol;
  sum += sum_of_v4(header.src) + sum_of_v4(header.dst);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

IpAddress from_v4(const std::array<uint8_t, 4>& quad) {
  return IpAddress::from_v4(quad[0], quad[1], quad[2], quad[3]);
}

std::array<uint8_t, 4> to_v4(const IpAddress& address) {
  std::array<uint8_t, 4> quad;
  std::copy_n(address.bytes.begin() + 12, quad.size(), quad.begin());
  return quad;
}

}  // namespace

Result<Ipv4Header> parse_ipv4(std::span<const uint8_t> ip_packet) {
  if (ip_packet.size() < Ipv4Header::kSize) return ParseError::kTruncatedIpv4;
  const auto layout = load<Ipv4Layout>(ip_packet.first<Ipv4Header::kSize>());
  const auto header_size = static_cast<uint8_t>((layout.version_and_words & 0xf) * 4);
  const uint16_t total_length = layout.total_length.get();
  const uint16_t flags_and_offset = layout.flags_and_offset.get();

  if (ip_version(ip_packet) != 4 || header_size < Ipv4Header::kSize || total_length < header_size) {
    return ParseError::kBadIpHeader;
  }
  if (ip_packet.size() < header_size) return ParseError::kTruncatedIpv4;
  if (internet_checksum(ip_packet.first(header_size)) != 0) return ParseError::kBadIpChecksum;
  if (ip_packet.size() < total_length) return ParseError::kTruncatedIpPayload;
  if ((flags_and_offset & kMoreFragmentsOrOffset) != 0) return ParseError::kFragmented;

  return Ipv4Header{.header_size = header_size,
                    .traffic_class = layout.traffic_class,
                    .total_length = total_length,
                    .identification = layout.identification.get(),
                    .dont_fragment = (flags_and_offset & kDontFragment) != 0,
                    .hop_limit = layout.hop_limit,
                    .protocol = layout.protocol,
                    .src = from_v4(layout.src),
                    .dst = from_v4(layout.dst)};
}

Result<Ipv6Header> parse_ipv6(std::span<const uint8_t> ip_packet) {
  if (ip_packet.size() < Ipv6Header::kSize) return ParseError::kTruncatedIpv6;
  const auto layout = load<Ipv6Layout>(ip_packet.first<Ipv6Header::kSize>());
  const uint32_t version_class_flow = layout.version_class_flow.get();
  const Ipv6Header header{.traffic_class = static_cast<uint8_t>(version_class_flow >> 20),
                          .flow_label = version_class_flow & 0xfffff,
                          .payload_length = layout.payload_length.get(),
                          .next_header = layout.next_header,
                          .hop_limit = layout.hop_limit,
                          .src = {layout.src},
                          .dst = {layout.dst}};

  // IPv4-mapped addresses must stay inside a node (RFC 6890, 2.2.3); here they would also become an
  // IPv4 packet when they are emitted again.
  if (ip_version(ip_packet) != 6 || header.src.is_v4() || header.dst.is_v4()) {
    return ParseError::kBadIpHeader;
  }
  if (ip_packet.size() - Ipv6Header::kSize < header.payload_length) {
    return ParseError::kTruncatedIpPayload;
  }
  if (header.next_header == kIpv6FragmentHeader) return ParseError::kFragmented;
  return header;
}

void emit(const Ipv4Header& header, std::span<uint8_t, Ipv4Header::kSize> bytes) {
  const auto flags = header.dont_fragment ? kDontFragment : uint16_t{0};
  ::new (bytes.data()) Ipv4Layout{.version_and_words = kVersionAndWords,
                                  .traffic_class = header.traffic_class,
                                  .total_length = Be16(header.total_length),
                                  .identification = Be16(header.identification),
                                  .flags_and_offset = Be16(flags),
                                  .hop_limit = header.hop_limit,
                                  .protocol = header.protocol,
                                  .checksum = Be16(checksum_of(header, flags)),
                                  .src = to_v4(header.src),
                                  .dst = to_v4(header.dst)};
}

void emit(const Ipv6Header& header, std::span<uint8_t, Ipv6Header::kSize> bytes) {
  const uint32_t version_class_flow =
      uint32_t{6} << 28 | uint32_t{header.traffic_class} << 20 | (header.flow_label & 0xfffff);
  const Ipv6Layout layout{.version_class_flow = Be32(version_class_flow),
                          .payload_length = Be16(header.payload_length),
                          .next_header = header.next_header,
                          .hop_limit = header.hop_limit,
                          .src = header.src.bytes,
                          .dst = header.dst.bytes};
  store(layout, bytes);
}

}  // namespace rocemu::wire
