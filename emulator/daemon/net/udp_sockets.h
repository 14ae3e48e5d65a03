// The sockets of a device on UDP. They are unconnected, and their datagrams are never fragmented,
// so that IPv4 packets have identification 0 and "don't fragment", which the ICRC covers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/config.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// The number of UDP source ports from which a device sends. It is enough for the paths of a
/// network that chooses among them by port (ECMP), and small enough to bind one socket for each
/// port.
inline constexpr size_t kSourcePorts = 8;

/// A socket that is bound to one of the source ports, and the values that it puts into IP headers.
/// All packets of a QP have the same values, and passing them with each datagram would take longer.
struct UdpSendSocket {
  UniqueFd fd;
  int traffic_class = -1;  // not set yet
  int hop_limit = -1;

  /// Sets the values for IP headers, if they differ from the present ones. Returns false with errno
  /// set if the system refuses.
  bool set_headers(bool is_v4, uint8_t traffic_class, uint8_t hop_limit);
};

struct UdpEndpoint {
  wire::IpAddress address;
  UniqueFd receive;                 // bound to port 4791
  UniqueFd headers;                 // headers of incoming packets (IpHeaders), with strict_icrc
  std::vector<UdpSendSocket> send;  // one for each source port, in order
};

struct UdpSockets {
  NetworkInterface interface;
  bool strict_icrc = false;
  std::vector<uint16_t> source_ports;
  std::vector<UdpEndpoint> endpoints;  // one for each address of the device
};

/// Opens all sockets of a device. Chooses source ports if `source_ports` is empty. If `strict_icrc`
/// is true, also opens sockets for received IPv4 headers, with which the ICRC is checked. Throws
/// StartError, which names a port that is in use.
UdpSockets open_udp_sockets(const engine::DeviceConfig& device, const NetworkInterface& interface,
                            bool strict_icrc, std::vector<uint16_t> source_ports = {});

/// Opens a socket that is a member of the multicast group on this interface. Returns nothing, with
/// errno set, if that is not possible.
UniqueFd open_group_socket(const wire::IpAddress& group, const NetworkInterface& interface,
                           bool strict_icrc);

}  // namespace rocemu::daemon
