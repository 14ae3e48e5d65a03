// The devices of a fabric: their configuration, ports and counters
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/engine/base/counters.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/config.h"
#include "wire/ip_address.h"

namespace rocemu::engine {

struct Device {
  explicit Device(DeviceConfig c) : config(std::move(c)) {}

  DeviceConfig config;
  abi::PortState port_state = abi::PortState::kActive;
  bool removed = false;
  uint64_t device_memory_used = 0;  // bytes
  uint32_t qps_created = 0;         // ever
  bool has_been_prepared = false;   // a program requested a CQ or a QP
  bool has_been_posted_to = false;  // a work request was posted
  uint32_t failed_late = 0;         // opcodes that the profile made fail when they complete
  Counters counters;

  bool port_is_up() const { return port_state == abi::PortState::kActive; }
};

class Devices {
 public:
  explicit Devices(const std::vector<DeviceConfig>& configs);

  Device& operator[](DeviceIndex index) { return devices_[index.value]; }
  const Device& operator[](DeviceIndex index) const { return devices_[index.value]; }
  uint32_t count() const { return static_cast<uint32_t>(devices_.size()); }
  auto begin() const { return devices_.begin(); }
  auto end() const { return devices_.end(); }

  /// Returns the device that has the address in its GID table, if there is one.
  std::optional<DeviceIndex> with_address(const wire::IpAddress& address) const;

 private:
  std::vector<Device> devices_;
};

}  // namespace rocemu::engine
