// Converts IP addresses to and from the format of sockets.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "wire/ip_address.h"

namespace rocemu::daemon {

struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t size = 0;

  SocketAddress() : v6{} {}
  /// `interface` is used only for addresses that are valid on one link only.
  SocketAddress(const wire::IpAddress& ip, uint16_t port, uint32_t interface);

  /// Returns the IP address that recvmsg(2) stored. Its family must be AF_INET or AF_INET6.
  wire::IpAddress ip() const;
  uint16_t port() const { return ntohs(any.sa_family == AF_INET ? v4.sin_port : v6.sin6_port); }
};

}  // namespace rocemu::daemon
