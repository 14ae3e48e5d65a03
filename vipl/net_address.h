// Conversion of VIP_NET_ADDRESS to a value and back, and of a discriminator to a port
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "vipl/vipl.h"

namespace rocemu::vipl {

/// The maximum length of a discriminator: a request's private data of 56 bytes contains two
/// (cm_messages.h).
inline constexpr size_t kMaxDiscriminator = 20;

/// A discriminator has kPortsTried consecutive ports, below those that systems assign themselves.
/// Several processes can wait on one NIC: each takes the first free port, and clients try them all.
inline constexpr uint16_t kFirstPort = 20000;
inline constexpr uint16_t kPortRange = 8000;
inline constexpr uint16_t kPortsTried = 8;

struct NetAddress {
  std::string host;  // 4 or 16 bytes
  std::string discriminator;

  auto operator<=>(const NetAddress&) const = default;
};

/// Converts the address. Returns nothing if it is null or invalid for this provider.
std::optional<NetAddress> read_address(const VIP_NET_ADDRESS* address);
/// Writes the address to `to`, which must have space for it.
void write_address(const NetAddress& from, VIP_NET_ADDRESS* to);

uint16_t port_of(const std::string& discriminator, uint16_t attempt);

/// Returns the socket address of a host; the port is in host byte order.
sockaddr_storage socket_address(const std::string& host, uint16_t port);
std::string host_of(const sockaddr* address);

}  // namespace rocemu::vipl
