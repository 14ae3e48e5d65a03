// The sockets of a device on UDP. They are unconnected and never let their datagrams be fragmented,
// so that IPv4 leaves with identification 0 and "don't fragment", which the ICRC covers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/config.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// UDP source ports that a device sends from: enough for the paths of a network that chooses among
/// them by port (ECMP), few enough to bind one socket each.
inline constexpr size_t kSourcePorts = 8;

/// A socket bound to one of the source ports, and what it puts into IP headers: to say so with each
/// datagram takes longer, and a QP's are all the same.
struct UdpSendSocket {
  UniqueFd fd;
  int traffic_class = -1;  // not set yet
  int hop_limit = -1;

  /// False and errno if the system refuses.
  bool set_headers(bool is_v4, uint8_t traffic_class, uint8_t hop_limit);
};

struct UdpEndpoint {
  wire::IpAddress address;
  UniqueFd receive;                 // bound to port 4791
  UniqueFd headers;                 // of the packets that come there (IpHeaders), with strict_icrc
  std::vector<UdpSendSocket> send;  // of the device's source ports, in their order
};

struct UdpSockets {
  NetworkInterface interface;
  bool strict_icrc = false;
  std::vector<uint16_t> source_ports;
  std::vector<UdpEndpoint> endpoints;  // one for each address of the device
};

/// Chooses source ports if `source_ports` is empty. With `strict_icrc` the ICRC is to be checked
/// with the IP header that came. Throws StartError; a port in use is named.
UdpSockets open_udp_sockets(const engine::DeviceConfig& device, const NetworkInterface& interface,
                            bool strict_icrc, std::vector<uint16_t> source_ports = {});

/// A member of the multicast group on that interface; -1 and errno if it cannot be one.
UniqueFd open_group_socket(const wire::IpAddress& group, const NetworkInterface& interface,
                           bool strict_icrc);

}  // namespace rocemu::daemon
