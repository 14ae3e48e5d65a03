// The sockets of a device, at an address of the loopback interface that only this process uses.
#pragma once

#include <unistd.h>

#include "emulator/daemon/net/udp_sockets.h"

namespace rocemu::daemon {

inline UdpSockets loopback_sockets(uint8_t host) {
  const auto pid = static_cast<uint32_t>(getpid());
  const auto address = wire::IpAddress::from_v4(127, static_cast<uint8_t>(1 + (pid >> 8) % 250),
                                                static_cast<uint8_t>(pid), host);
  engine::DeviceConfig device{};
  device.name = "rocemu0";
  device.addresses = {address};
  const std::vector<NetworkInterface> interfaces = list_network_interfaces();
  return open_udp_sockets(device, *find_owner(interfaces, address), false);
}

}  // namespace rocemu::daemon
