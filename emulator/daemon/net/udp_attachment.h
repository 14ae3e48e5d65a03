// Devices on the machine's network interfaces: `--device NAME=ADDR|INTERFACE --udp`.
#pragma once

#include <string>
#include <vector>

#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

/// Where the device is to be: at its addresses, or, if it has none, at all of the interface's.
struct UdpPlace {
  std::string interface;
};

/// Completes the devices' descriptions with what their interfaces tell: GID table, MAC address and
/// MTU. `places` has an entry for each device, which afterwards names its interface. Throws
/// StartError: no such interface, an address that is not the machine's, an MTU that is too small.
void attach_to_interfaces(std::vector<engine::DeviceConfig>& devices, std::vector<UdpPlace>& places,
                          const std::vector<NetworkInterface>& interfaces);

}  // namespace rocemu::daemon
