// Applies the effects of rules on a device: on its port, on its addresses, and its removal.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/faults/rule.h"
#include "emulator/engine/objects/objects.h"
#include "emulator/engine/step.h"

namespace rocemu::engine::faults {

class FaultInjector;

class DeviceFaults {
 public:
  /// All arguments must outlive this object.
  DeviceFaults(FaultInjector& injector, Objects& objects, Step& step)
      : injector_(injector), objects_(objects), step_(step) {}

  void change_port(DeviceIndex device, const PortChange& change);
  void change_gid(DeviceIndex device, uint32_t index, const wire::IpAddress& address);
  /// Marks the device for removal. The removal must be done later, since the caller that consulted
  /// the rules still uses the device.
  void remove_soon(DeviceIndex device) { removals_.push_back(device); }
  bool has_removals() const { return !removals_.empty(); }
  /// Returns the devices that were marked for removal, and clears the marks. The caller must remove
  /// them.
  std::vector<DeviceIndex> take_removals();

  /// Restores the ports whose downtime has ended.
  void restore_ports();
  std::optional<Instant> next_deadline() const;
  bool has_port_returns() const { return !port_returns_.empty(); }

 private:
  FaultInjector& injector_;
  Objects& objects_;
  Step& step_;
  std::map<DeviceIndex, Instant> port_returns_;
  std::vector<DeviceIndex> removals_;
};

}  // namespace rocemu::engine::faults
