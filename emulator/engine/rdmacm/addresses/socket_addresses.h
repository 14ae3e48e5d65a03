// Socket addresses as librdmacm passes them: sockaddr_in, sockaddr_in6 and sockaddr_ib, bytes to
// values and back.
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
  wire::IpAddress address{};  // of kIb the GID
  uint16_t port = 0;          // of kIb the low 16 bits of the service ID
  uint32_t flow_info = 0;     // kIpv6 and kIb, as it came
  uint32_t scope = 0;         // kIpv6

  // kIb only.
  uint64_t service = 0;  // service ID, without its low 16 bits
  uint64_t service_mask = 0;
  uint64_t ib_scope = 0;  // as it came
  uint16_t pkey = 0;

  bool is_any() const;  // no address
  /// Bytes of its sockaddr; 0 without a family.
  size_t size() const;

  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};

/// The unspecified address of a family.
SocketAddress any_address(Family family);

/// True for a sockaddr_ib whose GID is ::1.
bool is_loopback_gid(const SocketAddress& address);
/// True for an IP address that means the machine itself: one of 127.0.0.0/8, or ::1.
bool is_loopback(const SocketAddress& address);
/// Returns whether the address is in fe80::/10: it is valid on one interface only, its scope.
bool is_link_local(const SocketAddress& address);

/// Nothing for a family that is none of these or that the bytes are too few for. An address without
/// family (all of it zero, say) is nothing too.
std::optional<SocketAddress> parse_socket_address(std::span<const uint8_t> bytes);

/// Writes size() bytes, or as many as there is room for.
void emit(const SocketAddress& address, std::span<uint8_t> bytes);

}  // namespace rocemu::engine::cm
