// Attaches devices to the machine's network interfaces: `--device NAME=ADDR|INTERFACE --udp`.
#pragma once

#include <string>
#include <vector>

#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

/// The interface of a device on UDP. If it is empty, the device's addresses determine the
/// interface; else the device gets all addresses of the interface.
struct UdpBinding {
  std::string interface;
};

/// Completes the configuration of the devices with the properties of their interfaces: GID table,
/// MAC address and MTU. `bindings` has an element for each device, which names the interface
/// afterwards. Throws StartError if an interface does not exist, the machine does not have an
/// address, or an MTU is too small.
void attach_to_interfaces(std::vector<engine::DeviceConfig>& devices,
                          std::vector<UdpBinding>& bindings,
                          const std::vector<NetworkInterface>& interfaces);

}  // namespace rocemu::daemon
