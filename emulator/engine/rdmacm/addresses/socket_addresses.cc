#include "emulator/engine/rdmacm/addresses/socket_addresses.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rocemu::engine::cm {
namespace {

constexpr size_t kSizeIpv4 = 16, kSizeIpv6 = 28, kSizeIb = 48;
constexpr uint64_t kPortMask = 0xffff;
constexpr wire::IpAddress kIpv6Loopback = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

// Reads a field. The fields have these offsets: family 0 (host byte order); IPv4: port 2, address
// 4; IPv6: port 2, flow information 4, address 8, scope 24 (host byte order); IB: P_Key 2, flow
// information 4, GID 8, service ID 24, its mask 32, scope 40 (host byte order).
template <class T>
T host_order(std::span<const uint8_t> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

uint64_t big_endian(std::span<const uint8_t> bytes, size_t offset, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[offset + i];
  return value;
}

void put_big_endian(std::span<uint8_t> bytes, size_t offset, size_t size, uint64_t value) {
  for (size_t i = size; i-- > 0; value >>= 8) bytes[offset + i] = static_cast<uint8_t>(value);
}

template <class T>
void put_host_order(std::span<uint8_t> bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

size_t size_of(Family family) {
  switch (family) {
    case Family::kNone:
      return 0;
    case Family::kIpv4:
      return kSizeIpv4;
    case Family::kIpv6:
      return kSizeIpv6;
    case Family::kIb:
      return kSizeIb;
  }
  return 0;
}

}  // namespace

size_t SocketAddress::size() const {
  return size_of(family);
}

bool SocketAddress::is_any() const {
  return address == any_address(family).address;
}

SocketAddress any_address(Family family) {
  SocketAddress any;
  any.family = family;
  if (family == Family::kIpv4) any.address = wire::IpAddress::from_v4(0, 0, 0, 0);
  return any;
}

bool is_loopback_gid(const SocketAddress& address) {
  return address.family == Family::kIb && address.address == kIpv6Loopback;
}

bool is_loopback(const SocketAddress& address) {
  if (address.family == Family::kIpv4) return address.address.bytes[12] == 127;
  return address.family == Family::kIpv6 && address.address == kIpv6Loopback;
}

bool is_link_local(const SocketAddress& address) {
  return address.family == Family::kIpv6 && address.address.bytes[0] == 0xfe &&
         (address.address.bytes[1] & 0xc0) == 0x80;
}

std::optional<SocketAddress> parse_socket_address(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof(uint16_t)) return std::nullopt;
  const auto family = static_cast<Family>(host_order<uint16_t>(bytes, 0));
  const size_t size = size_of(family);
  if (size == 0 || bytes.size() < size) return std::nullopt;
  SocketAddress parsed;
  parsed.family = family;
  switch (family) {
    case Family::kNone:
      return std::nullopt;
    case Family::kIpv4:
      parsed.port = static_cast<uint16_t>(big_endian(bytes, 2, 2));
      parsed.address = wire::IpAddress::from_v4(bytes[4], bytes[5], bytes[6], bytes[7]);
      break;
    case Family::kIpv6:
      parsed.port = static_cast<uint16_t>(big_endian(bytes, 2, 2));
      parsed.flow_info = host_order<uint32_t>(bytes, 4);
      std::copy_n(bytes.begin() + 8, 16, parsed.address.bytes.begin());
      parsed.scope = host_order<uint32_t>(bytes, 24);
      break;
    case Family::kIb: {
      parsed.pkey = static_cast<uint16_t>(big_endian(bytes, 2, 2));
      parsed.flow_info = host_order<uint32_t>(bytes, 4);
      std::copy_n(bytes.begin() + 8, 16, parsed.address.bytes.begin());
      parsed.service_mask = big_endian(bytes, 32, 8);
      const uint64_t service = big_endian(bytes, 24, 8);
      parsed.service = service & ~kPortMask;
      // If the mask omits the port, the port is 0, which means any port.
      parsed.port = static_cast<uint16_t>(service & parsed.service_mask & kPortMask);
      parsed.ib_scope = host_order<uint64_t>(bytes, 40);
      break;
    }
  }
  return parsed;
}

void emit(const SocketAddress& address, std::span<uint8_t> bytes) {
  std::array<uint8_t, kSizeIb> whole{};
  const std::span<uint8_t> out(whole);
  put_host_order(out, 0, static_cast<uint16_t>(address.family));
  const auto& ip = address.address.bytes;
  switch (address.family) {
    case Family::kNone:
      break;
    case Family::kIpv4:
      put_big_endian(out, 2, 2, address.port);
      std::copy(ip.begin() + 12, ip.end(), out.begin() + 4);
      break;
    case Family::kIpv6:
      put_big_endian(out, 2, 2, address.port);
      put_host_order(out, 4, address.flow_info);
      std::copy(ip.begin(), ip.end(), out.begin() + 8);
      put_host_order(out, 24, address.scope);
      break;
    case Family::kIb:
      put_big_endian(out, 2, 2, address.pkey);
      put_host_order(out, 4, address.flow_info);
      std::copy(ip.begin(), ip.end(), out.begin() + 8);
      put_big_endian(out, 24, 8, address.service | address.port);
      put_big_endian(out, 32, 8, address.service_mask);
      put_host_order(out, 40, address.ib_scope);
      break;
  }
  std::copy_n(out.begin(), std::min(address.size(), bytes.size()), bytes.begin());
}

}  // namespace rocemu::engine::cm
