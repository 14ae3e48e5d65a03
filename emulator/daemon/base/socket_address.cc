#include "emulator/daemon/base/socket_address.h"

#include <cstring>

namespace rocemu::daemon {
namespace {

/// Returns whether the address is valid on one link only: it is in fe80::/10, or is a multicast
/// address with link-local scope (RFC 4291, 2.7).
bool is_of_one_link(const wire::IpAddress& ip) {
  const auto& b = ip.bytes;
  return (b[0] == 0xfe && (b[1] & 0xc0) == 0x80) || (b[0] == 0xff && (b[1] & 0xf) <= 2);
}

}  // namespace

SocketAddress::SocketAddress(const wire::IpAddress& ip, uint16_t port, uint32_t interface) : v6{} {
  if (ip.is_v4()) {
    v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, &ip.bytes[12], sizeof v4.sin_addr);
    size = sizeof v4;
    return;
  }
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&v6.sin6_addr, ip.bytes.data(), ip.bytes.size());
  if (is_of_one_link(ip)) v6.sin6_scope_id = interface;
  size = sizeof v6;
}

wire::IpAddress SocketAddress::ip() const {
  wire::IpAddress ip = wire::IpAddress::from_v4(0, 0, 0, 0);
  if (any.sa_family == AF_INET) {
    std::memcpy(&ip.bytes[12], &v4.sin_addr, sizeof v4.sin_addr);
  } else {
    std::memcpy(ip.bytes.data(), &v6.sin6_addr, ip.bytes.size());
  }
  return ip;
}

}  // namespace rocemu::daemon
