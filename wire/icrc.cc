#include "wire/icrc.h"

#include <isa-l/crc.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

constexpr size_t kBehindIp = UdpHeader::kSize + Bth::kSize;
constexpr size_t kV4Head = Ipv4Header::kSize + kBehindIp;
constexpr size_t kV6Head = Ipv6Header::kSize + kBehindIp;
constexpr size_t kLargestHead = 60 + kBehindIp;  // IPv4 with options
static_assert(kLargestHead >= kV6Head);

using Head = std::array<uint8_t, kLargestHead>;

#if defined(__x86_64__)
const bool kHasAvx = __builtin_cpu_supports("avx") != 0;
__attribute__((target("avx"))) void zero_upper_halves() {
  _mm256_zeroupper();
}
#endif

// ISA-L leaves values in the upper halves of the vector registers. Some processors then need about
// 80 ns for the next SSE instruction, more than for the CRC of a short packet, and the kernel saves
// and restores larger registers in each switch between threads.
void end_vector_code() {
#if defined(__x86_64__)
  if (kHasAvx) zero_upper_halves();
#endif
}

// Returns a mask of the header bits that can change in transit; the ICRC is computed as if they
// were ones. All of them are in the headers up to the BTH.
constexpr Head ones_in_head(bool is_v4, size_t ip_size) {
  Head ones{};
  if (is_v4) {
    ones[1] = 0xff;              // traffic class
    ones[8] = 0xff;              // hop limit
    ones[10] = ones[11] = 0xff;  // header checksum
  } else {
    ones[0] = 0x0f;                      // traffic class
    ones[1] = ones[2] = ones[3] = 0xff;  // the rest of it, and the flow label
    ones[7] = 0xff;                      // hop limit
  }
  ones[ip_size + 6] = ones[ip_size + 7] = 0xff;  // UDP checksum
  ones[ip_size + UdpHeader::kSize + 4] = 0xff;   // FECN, BECN and reserved bits
  return ones;
}

constexpr Head kV4Ones = ones_in_head(true, Ipv4Header::kSize);
constexpr Head kV6Ones = ones_in_head(false, Ipv6Header::kSize);

// Computes the CRC of the headers. Works on a copy of them, so the payload does not move. With a
// size known at compile time the copy uses vectors, which the CRC can read at once.
template <size_t kExtent>
uint32_t crc_of_head(std::span<const uint8_t, kExtent> bytes, const Head& ones) {
  Head head;
  for (size_t i = 0; i < bytes.size(); ++i) head[i] = bytes[i] | ones[i];
  return crc32(kCrcOfEightOnes, std::span(head).first(bytes.size()));
}

}  // namespace

uint32_t crc32(uint32_t crc, std::span<const uint8_t> bytes) {
  crc = crc32_gzip_refl(crc, bytes.data(), bytes.size());
  end_vector_code();
  return crc;
}

uint32_t compute_icrc(std::span<const uint8_t> ip_packet) {
  const bool is_v4 = ip_version(ip_packet) == 4;
  const size_t ip_size = is_v4 ? size_t{4} * (ip_packet[0] & 0xf) : Ipv6Header::kSize;
  const size_t head_size = std::min(ip_packet.size(), ip_size + kBehindIp);
  uint32_t crc;
  if (head_size == kV4Head && ip_size == Ipv4Header::kSize) {
    crc = crc_of_head(ip_packet.first<kV4Head>(), kV4Ones);
  } else if (head_size == kV6Head && !is_v4) {
    crc = crc_of_head(ip_packet.first<kV6Head>(), kV6Ones);
  } else {
    crc = crc_of_head(ip_packet.first(head_size), ones_in_head(is_v4, ip_size));
  }
  return crc32(crc, ip_packet.subspan(head_size));
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
