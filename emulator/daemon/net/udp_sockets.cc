#include "emulator/daemon/net/udp_sockets.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "emulator/daemon/base/socket_address.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/net/ip_headers.h"
#include "wire/udp.h"

namespace rocemu::daemon {
namespace {

/// The requested buffer size of a socket, in bytes. A burst must fit into the buffer while the
/// daemon has no processor. The size exceeds the default limits of the system (net.core.rmem_max
/// and wmem_max), which reduce it.
constexpr int kSocketBuffer = 8 << 20;

bool set(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/// Opens a socket, and sets the options that all sockets have in common.
UniqueFd open_socket(bool is_v4) {
  UniqueFd fd(socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail_start("cannot open a UDP socket", errno);
  if (is_v4) {
    set(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    // With this option the socket can have an address that the interface does not have yet.
    set(fd.get(), IPPROTO_IP, IP_FREEBIND, 1);
  } else {
    set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set(fd.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
    // As for IPv4; or an address that the kernel still checks for duplicates.
    set(fd.get(), IPPROTO_IPV6, IPV6_FREEBIND, 1);
  }
  return fd;
}

/// Sets the options for receiving. If `join` is true, the system joins packets, and only the header
/// of the first packet is known.
void make_receiver(int fd, bool is_v4, bool join) {
  set(fd, SOL_SOCKET, SO_RCVBUF, kSocketBuffer);
  if (join) set(fd, IPPROTO_UDP, UDP_GRO, 1);
  if (is_v4) {
    set(fd, IPPROTO_IP, IP_RECVTOS, 1);
    set(fd, IPPROTO_IP, IP_RECVTTL, 1);
  } else {
    set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    // Linux's rdma_rxe and NICs send no UDP checksum, since the ICRC covers more (RFC 6935).
    // Without this option Linux drops such datagrams (RFC 8200, 8.1).
    set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
  }
}

/// Sets the options for sending. The socket receives nothing except the errors of sent datagrams.
void make_sender(int fd, bool is_v4, const NetworkInterface& interface) {
  set(fd, SOL_SOCKET, SO_SNDBUF, kSocketBuffer);
  sock_filter drop_all[] = {{BPF_RET | BPF_K, 0, 0, 0}};
  const sock_fprog program{1, drop_all};
  setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  if (is_v4) {
    set(fd, IPPROTO_IP, IP_RECVERR, 1);
    const ip_mreqn via{{}, {}, static_cast<int>(interface.index)};
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof via);
  } else {
    set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
    set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface.index));
  }
}

bool bind_to(int fd, const wire::IpAddress& ip, uint16_t port, const NetworkInterface& interface) {
  const SocketAddress address(ip, port, interface.index);
  return bind(fd, &address.any, address.size) == 0;
}

/// Returns a socket for each address of the device, bound to this port; nothing if another process
/// uses the port.
std::optional<std::vector<UniqueFd>> open_senders(const engine::DeviceConfig& device,
                                                  const NetworkInterface& interface,
                                                  uint16_t port) {
  std::vector<UniqueFd> sockets;
  for (const wire::IpAddress& ip : device.addresses) {
    sockets.push_back(open_socket(ip.is_v4()));
    if (!bind_to(sockets.back().get(), ip, port, interface)) {
      if (errno == EADDRINUSE) return std::nullopt;
      fail_start(fmt::format("device {}: cannot send from {}", device.name, wire::to_string(ip)),
                 errno);
    }
    make_sender(sockets.back().get(), ip.is_v4(), interface);
  }
  return sockets;
}

/// Returns the port after `port`, in the range that IBTA annex A17 specifies for source ports of
/// RoCEv2.
uint16_t next_source_port(uint16_t port) {
  return static_cast<uint16_t>(0xc000 | ((port + 1) & 0x3fff));
}

UniqueFd open_receiver(const engine::DeviceConfig& device, const wire::IpAddress& ip,
                       const NetworkInterface& interface, bool strict_icrc) {
  UniqueFd fd = open_socket(ip.is_v4());
  make_receiver(fd.get(), ip.is_v4(), !(strict_icrc && ip.is_v4()));
  if (bind_to(fd.get(), ip, wire::kRoceUdpPort, interface)) return fd;
  if (errno == EADDRINUSE) {
    throw StartError(fmt::format(
        "device {}: UDP port {} of {} is in use, by another rocemud or the kernel's rdma_rxe; give "
        "this device another address",
        device.name, wire::kRoceUdpPort, wire::to_string(ip)));
  }
  fail_start(fmt::format("device {}: cannot receive at {}", device.name, wire::to_string(ip)),
             errno);
}

UniqueFd open_headers(const engine::DeviceConfig& device, const wire::IpAddress& ip) {
  UniqueFd fd = IpHeaders::open_socket(ip);
  if (fd) return fd;
  if (errno == EPERM || errno == EACCES) {
    throw StartError(fmt::format(
        "device {}: --strict-icrc needs CAP_NET_RAW, to see IP headers; run as root, or "
        "`setcap cap_net_raw+ep` rocemud, or omit the option",
        device.name));
  }
  fail_start(
      fmt::format("device {}: cannot see the IP headers of {}", device.name, wire::to_string(ip)),
      errno);
}

}  // namespace

bool UdpSendSocket::set_headers(bool is_v4, uint8_t wanted_class, uint8_t wanted_limit) {
  const int level = is_v4 ? IPPROTO_IP : IPPROTO_IPV6;
  if (traffic_class != wanted_class) {
    if (!set(fd.get(), level, is_v4 ? IP_TOS : IPV6_TCLASS, wanted_class)) return false;
    traffic_class = wanted_class;
  }
  if (hop_limit != wanted_limit) {
    hop_limit = -1;
    if (!set(fd.get(), level, is_v4 ? IP_TTL : IPV6_UNICAST_HOPS, wanted_limit) ||
        !set(fd.get(), level, is_v4 ? IP_MULTICAST_TTL : IPV6_MULTICAST_HOPS, wanted_limit)) {
      return false;
    }
    hop_limit = wanted_limit;
  }
  return true;
}

UdpSockets open_udp_sockets(const engine::DeviceConfig& device, const NetworkInterface& interface,
                            bool strict_icrc, std::vector<uint16_t> source_ports) {
  UdpSockets sockets{
      .interface = interface, .strict_icrc = strict_icrc, .source_ports = {}, .endpoints = {}};
  for (const wire::IpAddress& ip : device.addresses) {
    UdpEndpoint endpoint{ip, {}, {}, {}};
    if (strict_icrc && ip.is_v4()) endpoint.headers = open_headers(device, ip);
    endpoint.receive = open_receiver(device, ip, interface, strict_icrc);
    sockets.endpoints.push_back(std::move(endpoint));
  }
  const bool choose = source_ports.empty();
  // The daemons of one host start their search at different ports.
  auto port = static_cast<uint16_t>(0xc000 | ((static_cast<uint32_t>(getpid()) * 61) & 0x3fff));
  for (uint32_t attempt = 0; sockets.source_ports.size() < kSourcePorts; ++attempt) {
    if (attempt == 0x4000) {
      throw StartError(fmt::format("device {}: no UDP ports are left to send from", device.name));
    }
    port = choose ? next_source_port(port) : source_ports.at(sockets.source_ports.size());
    auto senders = open_senders(device, interface, port);
    if (!senders && choose) continue;
    if (!senders) {
      throw StartError(fmt::format("device {}: UDP port {} is in use", device.name, port));
    }
    for (size_t i = 0; i < senders->size(); ++i) {
      sockets.endpoints[i].send.push_back({.fd = std::move((*senders)[i])});
    }
    sockets.source_ports.push_back(port);
  }
  return sockets;
}

UniqueFd open_group_socket(const wire::IpAddress& group, const NetworkInterface& interface,
                           bool strict_icrc) {
  const bool is_v4 = group.is_v4();
  UniqueFd fd = open_socket(is_v4);
  make_receiver(fd.get(), is_v4, !(strict_icrc && is_v4));
  // Several daemons of one host may be members of the same group.
  set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (!bind_to(fd.get(), group, wire::kRoceUdpPort, interface)) return {};
  bool joined;
  if (is_v4) {
    set(fd.get(), IPPROTO_IP, IP_MULTICAST_ALL, 0);
    ip_mreqn member{{}, {}, static_cast<int>(interface.index)};
    member.imr_multiaddr = SocketAddress(group, 0, 0).v4.sin_addr;
    joined = setsockopt(fd.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member) == 0;
  } else {
    ipv6_mreq member{};
    member.ipv6mr_multiaddr = SocketAddress(group, 0, 0).v6.sin6_addr;
    member.ipv6mr_interface = interface.index;
    joined = setsockopt(fd.get(), IPPROTO_IPV6, IPV6_JOIN_GROUP, &member, sizeof member) == 0;
  }
  return joined ? std::move(fd) : UniqueFd();
}

}  // namespace rocemu::daemon
