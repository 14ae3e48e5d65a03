// Chooses the IP addresses of devices that are not attached to a network.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

/// The sources of the addresses that are not on the command line
struct AddressSource {
  /// The name of a network interface for each device, which gets all addresses of that interface.
  /// The name is empty for a device whose addresses are on the command line.
  std::vector<std::string> interfaces;
  /// If true, the first device also gets the machine's addresses, like the first NIC of a machine.
  /// libfabric, for example, ignores the loopback interface, and looks for a device with the
  /// address of another interface.
  bool first_has_machines = false;
};

/// Sets the addresses of the devices. Throws StartError if an interface does not exist or has no
/// address, or if two devices have the same address.
void choose_addresses(std::vector<engine::DeviceConfig>& devices, const AddressSource& source,
                      const std::vector<NetworkInterface>& interfaces);

/// Throws StartError if one of the other devices has an address of this device.
void require_distinct(const engine::DeviceConfig& device,
                      std::span<const engine::DeviceConfig> others);

}  // namespace rocemu::daemon
