#include "emulator/daemon/net/device_addresses.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

/// The address that Debian assigns to the machine's own name in /etc/hosts.
constexpr wire::IpAddress kHostName = wire::IpAddress::from_v4(127, 0, 1, 1);

bool has(const engine::DeviceConfig& device, const wire::IpAddress& address) {
  return std::ranges::find(device.addresses, address) != device.addresses.end();
}

/// Adds to the first device the addresses that no device has yet, as far as its GID table has
/// space.
void add_to_first(std::vector<engine::DeviceConfig>& devices,
                  const std::vector<wire::IpAddress>& addresses) {
  std::vector<wire::IpAddress>& own = devices[0].addresses;
  for (const wire::IpAddress& address : addresses) {
    const auto has_it = [&](const engine::DeviceConfig& device) { return has(device, address); };
    if (own.size() < engine::kGidTableLength && std::ranges::none_of(devices, has_it)) {
      own.push_back(address);
    }
  }
}

}  // namespace

void choose_addresses(std::vector<engine::DeviceConfig>& devices, const AddressSource& source,
                      const std::vector<NetworkInterface>& interfaces) {
  for (size_t i = 0; i < source.interfaces.size(); ++i) {
    if (source.interfaces[i].empty()) continue;
    const std::string& name = devices[i].name;
    devices[i].addresses = gids_of(interface_named(interfaces, source.interfaces[i], name), name);
  }
  for (size_t i = 1; i < devices.size(); ++i) {
    require_distinct(devices[i], std::span(devices).first(i));
  }
  if (!source.first_has_machines) return;
  add_to_first(devices, {kHostName});
  std::vector<wire::IpAddress> machines;
  for (const NetworkInterface& interface : interfaces) {
    for (const auto& address : interface.addresses) machines.push_back(address.ip);
  }
  sort_as_gids(machines);
  add_to_first(devices, machines);
}

void require_distinct(const engine::DeviceConfig& device,
                      std::span<const engine::DeviceConfig> others) {
  for (const engine::DeviceConfig& other : others) {
    for (const wire::IpAddress& address : device.addresses) {
      if (!has(other, address)) continue;
      throw StartError(fmt::format("device {}: {} has the address {} already", device.name,
                                   other.name, wire::to_string(address)));
    }
  }
}

}  // namespace rocemu::daemon
