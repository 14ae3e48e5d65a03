// What rules do to a device: its port, its addresses, and pulling it out.
#include <utility>

#include "emulator/engine/fabric.h"

namespace rocemu::engine {

void Fabric::change_port(DeviceIndex index, const faults::PortChange& change) {
  port_returns_.erase(index);  // the latest rule counts
  set_port(index, change.up);
  step_.emit(DeviceChanged{index});
  if (change.lifetime) port_returns_[index] = now() + *change.lifetime;
}

void Fabric::restore_ports() {
  for (auto next = port_returns_.begin(); next != port_returns_.end();) {
    const auto [index, at] = *next;
    if (at > now()) {
      ++next;
      continue;
    }
    next = port_returns_.erase(next);
    set_port(index, true);
    step_.emit(DeviceChanged{index});
  }
}

std::optional<Instant> Fabric::next_port_return() const {
  std::optional<Instant> first;
  for (const auto& [index, at] : port_returns_) {
    if (!first || at < *first) first = at;
  }
  return first;
}

void Fabric::change_gid(DeviceIndex index, uint32_t gid, const wire::IpAddress& address) {
  auto& addresses = device(index).config.addresses;
  if (gid >= kGidTableLength || gid > addresses.size()) return;
  if (gid == addresses.size()) {
    addresses.push_back(address);
  } else {
    addresses[gid] = address;
  }
  raise_on_device(abi::EventType::kGidChange, index);
  step_.emit(DeviceChanged{index});
}

std::vector<DeviceIndex> Fabric::take_removals() {
  for (const DeviceIndex index : removals_) step_.emit(DeviceChanged{index});
  return std::exchange(removals_, {});
}

}  // namespace rocemu::engine
