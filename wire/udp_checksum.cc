#include "wire/udp_checksum.h"

#include <cstddef>

#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace rocemu::wire {
namespace {

constexpr size_t kIpAt = EthernetHeader::kSize;
constexpr size_t kUdpAt = kIpAt + Ipv6Header::kSize;
static_assert(kIpv6UdpChecksumAt == kUdpAt + 6);
constexpr size_t kAddressesAt = kIpAt + 8, kAddressesSize = 32;

/// Returns the sum of 16-bit numbers, of which the last may lack its second byte (RFC 1071).
uint64_t sum_of(std::span<const uint8_t> bytes) {
  uint64_t sum = 0;
  size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) sum += uint32_t{bytes[i]} << 8 | bytes[i + 1];
  if (i < bytes.size()) sum += uint32_t{bytes[i]} << 8;
  return sum;
}

}  // namespace

std::optional<uint16_t> missing_udp_checksum(std::span<const uint8_t> frame) {
  if (frame.size() < kUdpAt + UdpHeader::kSize) return std::nullopt;
  const auto ethernet = parse_ethernet(frame.first<EthernetHeader::kSize>());
  if (ethernet.ether_type != kEtherTypeIpv6 || frame[kIpAt + 6] != kIpProtocolUdp) {
    return std::nullopt;
  }
  const UdpHeader udp = parse_udp(frame.subspan<kUdpAt, UdpHeader::kSize>());
  if (udp.checksum != 0 || udp.length > frame.size() - kUdpAt) return std::nullopt;
  // RFC 8200, 8.1: the checksum covers a pseudo-header of both addresses, length and protocol, and
  // the packet.
  uint64_t sum = sum_of(frame.subspan(kAddressesAt, kAddressesSize)) + udp.length + kIpProtocolUdp +
                 sum_of(frame.subspan(kUdpAt, udp.length));
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  const auto checksum = static_cast<uint16_t>(~sum);
  return checksum != 0 ? checksum : 0xffff;
}

}  // namespace rocemu::wire
