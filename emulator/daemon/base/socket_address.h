// IP addresses as sockets have them.
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
  /// `interface` counts for addresses that are of one link only.
  SocketAddress(const wire::IpAddress& ip, uint16_t port, uint32_t interface);

  /// Of what recvmsg(2) filled in, whose family is one of the two.
  wire::IpAddress ip() const;
  uint16_t port() const { return ntohs(any.sa_family == AF_INET ? v4.sin_port : v6.sin6_port); }
};

}  // namespace rocemu::daemon
