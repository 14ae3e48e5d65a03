#include "emulator/engine/config.h"

#include <algorithm>
#include <array>

namespace rocemu::engine {
namespace {

// Returns the modified EUI-64 of the MAC address (RFC 4291, appendix A).
std::array<uint8_t, 8> eui_64(const wire::MacAddress& mac) {
  const auto& b = mac.bytes;
  return {static_cast<uint8_t>(b[0] ^ 2), b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]};
}

wire::IpAddress link_local(const wire::MacAddress& mac) {
  wire::IpAddress address{{0xfe, 0x80}};
  const auto interface_id = eui_64(mac);
  std::copy(interface_id.begin(), interface_id.end(), address.bytes.begin() + 8);
  return address;
}

constexpr wire::IpAddress kIpv6Loopback = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

}  // namespace

uint64_t node_guid(const DeviceConfig& device) {
  uint64_t guid = 0;
  for (const uint8_t byte : eui_64(device.mac)) guid = guid << 8 | byte;
  return guid;
}

void arrange_gids(DeviceConfig& device) {
  const DeviceProfile& profile = *device.profile;
  if (profile.is_generic()) return;
  std::vector<wire::IpAddress> addresses = device.addresses;
  if (profile.link_local_first) {
    const auto is_link_local = [](const wire::IpAddress& address) {
      return address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
    };
    if (!device.outside && std::ranges::none_of(addresses, is_link_local))
      addresses.push_back(link_local(device.mac));
    std::vector<wire::IpAddress> sorted;
    for (const bool wanted : {true, false}) {
      for (const wire::IpAddress& address : addresses) {
        if (is_link_local(address) == wanted) sorted.push_back(address);
      }
    }
    addresses = std::move(sorted);
  }
  device.addresses.clear();
  const size_t room =
      std::min<size_t>(profile.port.gid_tbl_len, kGidTableLength * profile.gid_types.size());
  for (const wire::IpAddress& address : addresses) {
    if (device.addresses.size() + profile.gid_types.size() > room) break;
    device.addresses.insert(device.addresses.end(), profile.gid_types.size(), address);
  }
}

FabricConfig default_fabric(uint32_t count) {
  FabricConfig fabric;
  for (uint32_t i = 0; i < count; ++i) {
    DeviceConfig device;
    device.name = "rocemu" + std::to_string(i);
    device.mac = {{0x02, 0, 0, 0, 0, static_cast<uint8_t>(i + 1)}};
    device.addresses = {wire::IpAddress::from_v4(127, 0, 0, static_cast<uint8_t>(i + 1)),
                        i == 0 ? kIpv6Loopback : link_local(device.mac)};
    fabric.devices.push_back(std::move(device));
  }
  return fabric;
}

}  // namespace rocemu::engine
