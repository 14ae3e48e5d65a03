#include "emulator/engine/objects/devices.h"

namespace rocemu::engine {

Devices::Devices(const std::vector<DeviceConfig>& configs)
    : devices_(configs.begin(), configs.end()) {}

std::optional<DeviceIndex> Devices::with_address(const wire::IpAddress& address) const {
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    for (const wire::IpAddress& own : devices_[i].config.addresses) {
      if (own == address) return DeviceIndex{i};
    }
  }
  return std::nullopt;
}

}  // namespace rocemu::engine
