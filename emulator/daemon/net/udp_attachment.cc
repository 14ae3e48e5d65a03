#include "emulator/daemon/net/udp_attachment.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/net/device_addresses.h"

namespace rocemu::daemon {
namespace {

const NetworkInterface& interface_of(const engine::DeviceConfig& device,
                                     const std::vector<NetworkInterface>& interfaces) {
  const NetworkInterface* interface = nullptr;
  for (const wire::IpAddress& address : device.addresses) {
    const NetworkInterface* owner = find_owner(interfaces, address);
    if (owner == nullptr) {
      throw StartError(fmt::format(
          "device {}: {} is not an address of this machine; `ip address` lists its addresses",
          device.name, wire::to_string(address)));
    }
    if (interface != nullptr && owner != interface) {
      throw StartError(
          fmt::format("device {}: its addresses belong to two interfaces, {} and {}; give each a "
                      "separate device",
                      device.name, interface->name, owner->name));
    }
    interface = owner;
  }
  return *interface;
}

/// Returns the interface's MAC address. If it has none, or another device has the same one, returns
/// one that is derived from the device's IP address.
wire::MacAddress mac_for(const engine::DeviceConfig& device, const NetworkInterface& interface,
                         std::span<const engine::DeviceConfig> others) {
  const auto is_taken = [&](const engine::DeviceConfig& other) {
    return other.mac == interface.mac;
  };
  if (interface.mac != wire::MacAddress{} && std::ranges::none_of(others, is_taken)) {
    return interface.mac;
  }
  const auto& b = device.addresses[0].bytes;
  return {{0x02, b[11], b[12], b[13], b[14], b[15]}};
}

}  // namespace

void attach_to_interfaces(std::vector<engine::DeviceConfig>& devices,
                          std::vector<UdpBinding>& bindings,
                          const std::vector<NetworkInterface>& interfaces) {
  for (size_t i = 0; i < devices.size(); ++i) {
    engine::DeviceConfig& device = devices[i];
    const NetworkInterface* interface;
    if (!bindings[i].interface.empty()) {
      interface = &interface_named(interfaces, bindings[i].interface, device.name);
      device.addresses = gids_of(*interface, device.name);
    } else {
      interface = &interface_of(device, interfaces);
      bindings[i].interface = interface->name;
    }
    const auto mtu = largest_path_mtu(interface->mtu);
    if (!mtu) {
      throw StartError(fmt::format(
          "device {}: the MTU of {} is {}, and RoCE needs at least 344; see `ip link set {} mtu`",
          device.name, interface->name, interface->mtu, interface->name));
    }
    require_distinct(device, std::span(devices).first(i));
    device.active_mtu = *mtu;
    device.mac = mac_for(device, *interface, std::span(devices).first(i));
    device.outside = true;
  }
}

}  // namespace rocemu::daemon
