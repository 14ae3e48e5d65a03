// The IP addresses of devices that are not attached to a network.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "emulator/daemon/net/network_interface.h"
#include "emulator/engine/config.h"

namespace rocemu::daemon {

/// The sources of addresses that the command line does not specify
struct AddressSource {
  /// One entry for each device: the interface all of whose addresses the device gets; empty for a
  /// device that has addresses.
  std::vector<std::string> interfaces;
  /// If true, the first device also gets the machine's addresses, like a machine's first NIC.
  /// libfabric, for example, uses no loopback interface, and looks for a device with an address of
  /// another interface.
  bool first_has_machines = false;
};

/// Completes the devices' addresses. Throws StartError if an interface does not exist or has no
/// address, or if two devices have the same address.
void choose_addresses(std::vector<engine::DeviceConfig>& devices, const AddressSource& source,
                      const std::vector<NetworkInterface>& interfaces);

/// Throws StartError if another device has an address of the device.
void require_distinct(const engine::DeviceConfig& device,
                      std::span<const engine::DeviceConfig> others);

}  // namespace rocemu::daemon
