// Socket addresses in librdmacm's formats (sockaddr_in, sockaddr_in6 and sockaddr_ib), with
// conversions from bytes to values and back
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/ip_address.h"

namespace rocemu::engine::cm {

enum class Family : uint16_t { kNone = 0, kIpv4 = 2, kIpv6 = 10, kIb = 27 };

struct SocketAddress {
  Family family = Family::kNone;
  wire::IpAddress address{};  // for kIb the GID
  uint16_t port = 0;          // for kIb the low 16 bits of the service ID
  uint32_t flow_info = 0;     // kIpv6 and kIb, as received
  uint32_t scope = 0;         // kIpv6

  // Members that only kIb uses
  uint64_t service = 0;  // service ID, without its low 16 bits
  uint64_t service_mask = 0;
  uint64_t ib_scope = 0;  // as received
  uint16_t pkey = 0;

  bool is_any() const;  // the unspecified address
  /// Returns the size of the sockaddr in bytes; 0 without a family.
  size_t size() const;

  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};

/// Returns the unspecified address of a family.
SocketAddress any_address(Family family);

/// Returns whether the address is a sockaddr_ib with the GID ::1.
bool is_loopback_gid(const SocketAddress& address);
/// Returns whether the address is a loopback address (127.0.0.0/8 or ::1).
bool is_loopback(const SocketAddress& address);
/// Returns whether the address is in fe80::/10. Such an address is valid only on one network
/// interface, whose number is the scope.
bool is_link_local(const SocketAddress& address);

/// Returns the socket address in the bytes. Returns nothing if the family is not IPv4, IPv6 or IB
/// (in zeros, for example, there is no family), or if there are too few bytes.
std::optional<SocketAddress> parse_socket_address(std::span<const uint8_t> bytes);

/// Writes the sockaddr, which has size() bytes. If `bytes` is shorter, writes only the part that
/// fits.
void emit(const SocketAddress& address, std::span<uint8_t> bytes);

}  // namespace rocemu::engine::cm
