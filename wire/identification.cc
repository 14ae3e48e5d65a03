#include "wire/identification.h"

#include <algorithm>
#include <array>
#include <bit>

#include "wire/ethernet.h"
#include "wire/icrc.h"
#include "wire/ip.h"

namespace rocemu::wire {
namespace {

// CRC-32 is arithmetic on polynomials over GF(2) modulo P = x^32 + x^26 + ... + 1. In its bit
// order, the coefficient of x^0 is the highest bit.
using Polynomial = uint32_t;
constexpr Polynomial kP = 0xedb88320;  // without its x^32
constexpr Polynomial kOne = 0x80000000;

constexpr Polynomial times_x(Polynomial a) {
  return (a & 1) != 0 ? (a >> 1) ^ kP : a >> 1;
}

constexpr Polynomial multiply(Polynomial a, Polynomial b) {
  Polynomial product = 0;
  for (Polynomial bit = kOne; bit != 0; bit >>= 1, b = times_x(b)) {
    if ((a & bit) != 0) product ^= b;
  }
  return product;
}

// The values x^(2^i).
constexpr auto kSquares = [] {
  std::array<Polynomial, 32> squares{};
  squares[0] = times_x(kOne);
  for (size_t i = 1; i < squares.size(); ++i) {
    squares[i] = multiply(squares[i - 1], squares[i - 1]);
  }
  return squares;
}();

constexpr Polynomial power_of_x(uint32_t exponent) {
  Polynomial power = kOne;
  for (size_t i = 0; i < kSquares.size(); ++i) {
    if ((exponent >> i & 1) != 0) power = multiply(power, kSquares[i]);
  }
  return power;
}

// P is primitive: x has the order 2^32 - 1, so a division can be done as a multiplication.
constexpr uint32_t kOrder = 0xffffffff;
static_assert(power_of_x(kOrder) == kOne);
static_assert(multiply(power_of_x(12345), power_of_x(kOrder - 12345)) == kOne);

constexpr size_t kIdentificationAt = 4;  // in the IPv4 header

// Returns the distance in bits between an identification, as a little-endian number, and the ICRC
// of a packet of that size: the CRC's register is multiplied by x for each bit.
constexpr uint32_t bits_to_icrc(size_t ip_packet_size) {
  return static_cast<uint32_t>(8 * (ip_packet_size - kIcrcSize - kIdentificationAt));
}

// For packets of one size: the change of the ICRC by each bit of an identification (as a
// little-endian number), and the multiplier for the reverse direction. The values are kept for the
// latest sizes, because frames have few sizes.
struct Powers {
  size_t ip_packet_size = 0;
  std::array<Polynomial, 16> bits{};
  Polynomial back = kOne;

  Polynomial change_of(uint16_t identification) const {
    Polynomial change = 0;
    for (unsigned rest = identification; rest != 0; rest &= rest - 1) {
      change ^= bits[static_cast<size_t>(std::countr_zero(rest))];
    }
    return change;
  }
};

Powers make_powers(size_t ip_packet_size) {
  const uint32_t distance = bits_to_icrc(ip_packet_size);
  Powers powers{.ip_packet_size = ip_packet_size, .back = power_of_x(kOrder - distance)};
  powers.bits.back() = multiply(1u << (powers.bits.size() - 1), power_of_x(distance));
  for (size_t i = powers.bits.size() - 1; i > 0; --i) {
    powers.bits[i - 1] = times_x(powers.bits[i]);
  }
  return powers;
}

const Powers& powers_for(size_t ip_packet_size) {
  static thread_local std::array<Powers, 64> known{};
  Powers& powers = known[ip_packet_size / 4 % known.size()];
  if (powers.ip_packet_size != ip_packet_size) powers = make_powers(ip_packet_size);
  return powers;
}

uint16_t swapped(uint16_t value) {
  return static_cast<uint16_t>(value << 8 | value >> 8);
}

uint16_t load_be16(std::span<const uint8_t> bytes, size_t at) {
  return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

void store_be16(uint16_t value, std::span<uint8_t> bytes, size_t at) {
  bytes[at] = static_cast<uint8_t>(value >> 8);
  bytes[at + 1] = static_cast<uint8_t>(value);
}

// Returns the IP packet in the frame without padding; empty if it is too short for an ICRC.
template <class Byte>
std::span<Byte> ip_packet_in(std::span<Byte> frame) {
  if (frame.size() < EthernetHeader::kSize + Ipv4Header::kSize + kIcrcSize) return {};
  const std::span<Byte> rest = frame.subspan(EthernetHeader::kSize);
  size_t size = 0;
  if (ip_version(rest) == 4) {
    size = load_be16(rest, 2);
    if (size < Ipv4Header::kSize + kIcrcSize) return {};
  } else if (ip_version(rest) == 6 && rest.size() >= Ipv6Header::kSize) {
    size = Ipv6Header::kSize + size_t{load_be16(rest, 4)};
    if (size < Ipv6Header::kSize + kIcrcSize) return {};
  }
  return size <= rest.size() ? rest.first(size) : std::span<Byte>();
}

}  // namespace

std::optional<uint16_t> find_identification(std::span<const uint8_t> frame) {
  const auto packet = ip_packet_in(frame);
  if (packet.empty()) return std::nullopt;
  const bool is_v4 = ip_version(packet) == 4;
  const uint16_t own = is_v4 ? load_be16(packet, kIdentificationAt) : uint16_t{0};
  const uint32_t difference =
      compute_icrc(packet.first(packet.size() - kIcrcSize)) ^ load_icrc(packet.last<kIcrcSize>());
  if (difference == 0) return own;
  if (!is_v4) return std::nullopt;
  const Polynomial change = multiply(difference, powers_for(packet.size()).back);
  if (change > 0xffff) return std::nullopt;
  return static_cast<uint16_t>(own ^ swapped(static_cast<uint16_t>(change)));
}

uint16_t identification_of(std::span<const uint8_t> frame) {
  const auto packet = ip_packet_in(frame);
  return ip_version(packet) == 4 ? load_be16(packet, kIdentificationAt) : uint16_t{0};
}

void write_identification(std::span<uint8_t> frame, uint16_t identification) {
  const auto packet = ip_packet_in(frame);
  if (ip_version(packet) != 4) return;
  const uint16_t own = load_be16(packet, kIdentificationAt);
  store_be16(identification, packet, kIdentificationAt);
  // The header checksum is updated by equation 3 of RFC 1624.
  uint32_t checksum = static_cast<uint16_t>(~load_be16(packet, 10));
  checksum += static_cast<uint16_t>(~own);
  checksum += identification;
  checksum = (checksum & 0xffff) + (checksum >> 16);
  checksum = (checksum & 0xffff) + (checksum >> 16);
  store_be16(static_cast<uint16_t>(~checksum), packet, 10);
}

void change_identification(std::span<uint8_t> frame, uint16_t identification) {
  const auto packet = ip_packet_in(frame);
  if (ip_version(packet) != 4) return;
  const uint16_t change =
      swapped(static_cast<uint16_t>(load_be16(packet, kIdentificationAt) ^ identification));
  write_identification(frame, identification);
  const auto icrc = packet.last<kIcrcSize>();
  store_icrc(load_icrc(icrc) ^ powers_for(packet.size()).change_of(change), icrc);
}

}  // namespace rocemu::wire
