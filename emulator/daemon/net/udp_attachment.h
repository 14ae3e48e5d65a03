// Devices on the machine's network interfaces: `--device NAME=ADDR|INTERFACE --udp`.
#pragma once

#include <string>
#include <vector>

#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

/// The place of the device: its addresses or, if it has none, all addresses of the interface.
struct UdpPlace {
  std::string interface;
};

/// Completes the devices' descriptions with the properties of their interfaces: GID table, MAC
/// address and MTU. `places` has an entry for each device, and names its interface afterwards.
/// Throws StartError if an interface does not exist, an address is not the machine's, or an MTU is
/// too small.
void attach_to_interfaces(std::vector<engine::DeviceConfig>& devices, std::vector<UdpPlace>& places,
                          const std::vector<NetworkInterface>& interfaces);

}  // namespace rocemu::daemon
