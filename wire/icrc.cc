#include "wire/icrc.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "wire/bth.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace rocemu::wire {
namespace {

// The CRC starts with eight bytes of ones, in the place of an InfiniBand local route header.
constexpr uint32_t kCrcOfEightOnes = 0x2144df1c;

constexpr size_t kLargestIpHeader = 60;
static_assert(kLargestIpHeader >= Ipv6Header::kSize);

}  // namespace

uint32_t compute_icrc(std::span<const uint8_t> ip_packet) {
  const bool is_v4 = ip_version(ip_packet) == 4;
  const size_t ip_size = is_v4 ? size_t{4} * (ip_packet[0] & 0xf) : Ipv6Header::kSize;
  const size_t udp_at = ip_size;
  const size_t bth_at = udp_at + UdpHeader::kSize;

  // What may change on the way counts as ones. All of it lies in the headers up to the BTH, so a
  // copy of these is enough, and the payload stays where it is.
  std::array<uint8_t, kLargestIpHeader + UdpHeader::kSize + Bth::kSize> head{};
  const size_t head_size = std::min(ip_packet.size(), bth_at + Bth::kSize);
  if (head_size > 0) std::memcpy(head.data(), ip_packet.data(), head_size);
  if (is_v4) {
    head[1] = 0xff;              // traffic class
    head[8] = 0xff;              // hop limit
    head[10] = head[11] = 0xff;  // header checksum
  } else {
    head[0] |= 0x0f;                     // traffic class
    head[1] = head[2] = head[3] = 0xff;  // the rest of it, and the flow label
    head[7] = 0xff;                      // hop limit
  }
  head[udp_at + 6] = head[udp_at + 7] = 0xff;  // checksum
  head[bth_at + 4] = 0xff;                     // FECN, BECN and reserved bits

  const uint32_t crc = crc32_gzip_refl(kCrcOfEightOnes, head.data(), head_size);
  const auto rest = ip_packet.subspan(head_size);
  return crc32_gzip_refl(crc, rest.data(), rest.size());
}

void store_icrc(uint32_t icrc, std::span<uint8_t, kIcrcSize> bytes) {
  for (size_t i = 0; i < kIcrcSize; ++i) bytes[i] = static_cast<uint8_t>(icrc >> (8 * i));
}

uint32_t load_icrc(std::span<const uint8_t, kIcrcSize> bytes) {
  uint32_t icrc = 0;
  for (size_t i = 0; i < kIcrcSize; ++i) icrc |= uint32_t{bytes[i]} << (8 * i);
  return icrc;
}

}  // namespace rocemu::wire
