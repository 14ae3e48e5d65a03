#include "emulator/engine/faults/device_faults.h"

#include <utility>

#include "emulator/engine/faults/fault_injector.h"
#include "emulator/engine/objects/port.h"

namespace rocemu::engine::faults {

void DeviceFaults::change_port(DeviceIndex index, const PortChange& change) {
  port_returns_.erase(index);  // the latest rule counts
  set_port(objects_, injector_.events, index, change.up);
  step_.emit(DeviceChanged{index});
  if (change.lifetime) port_returns_[index] = step_.now() + *change.lifetime;
}

void DeviceFaults::restore_ports() {
  for (auto next = port_returns_.begin(); next != port_returns_.end();) {
    const auto [index, at] = *next;
    if (at > step_.now()) {
      ++next;
      continue;
    }
    next = port_returns_.erase(next);
    set_port(objects_, injector_.events, index, true);
    step_.emit(DeviceChanged{index});
  }
}

std::optional<Instant> DeviceFaults::next_deadline() const {
  std::optional<Instant> first;
  for (const auto& [index, at] : port_returns_) {
    if (!first || at < *first) first = at;
  }
  return first;
}

void DeviceFaults::change_gid(DeviceIndex index, uint32_t gid, const wire::IpAddress& address) {
  auto& addresses = objects_.devices[index].config.addresses;
  if (gid >= kGidTableLength || gid > addresses.size()) return;
  if (gid == addresses.size()) {
    addresses.push_back(address);
  } else {
    addresses[gid] = address;
  }
  injector_.made_up_events.raise_on_device(abi::EventType::kGidChange, index);
  step_.emit(DeviceChanged{index});
}

std::vector<DeviceIndex> DeviceFaults::take_removals() {
  for (const DeviceIndex index : removals_) step_.emit(DeviceChanged{index});
  return std::exchange(removals_, {});
}

}  // namespace rocemu::engine::faults
