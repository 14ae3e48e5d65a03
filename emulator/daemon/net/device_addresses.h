// The IP addresses of devices that are not attached to a network.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

/// Where addresses come from that the command line does not give.
struct AddressSource {
  /// One for each device: the interface all of whose addresses it has; empty for one that has
  /// addresses.
  std::vector<std::string> interfaces;
  /// The first device also has the machine's addresses, as a machine's first NIC has. libfabric
  /// among others takes no loopback interface, and looks for a device with another's address.
  bool first_has_machines = false;
};

/// Completes the devices' addresses. Throws StartError: no such interface, an interface without an
/// address, an address that two devices have.
void choose_addresses(std::vector<engine::DeviceConfig>& devices, const AddressSource& source,
                      const std::vector<NetworkInterface>& interfaces);

/// Throws StartError if one of the others has an address of the device.
void require_distinct(const engine::DeviceConfig& device,
                      std::span<const engine::DeviceConfig> others);

}  // namespace rocemu::daemon
