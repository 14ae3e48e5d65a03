// Which part of a fabric an engine is. Where each device has a thread of its own it has an engine
// of its own too, with its clients and all that they make; one engine more has the devices' QPs 1,
// and with them the connection manager. Frames go from one to the other.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

struct Part {
  enum class Of : uint8_t { kAll, kConnections, kDevice };
  Of of = Of::kAll;
  DeviceIndex device{};  // kDevice
  uint32_t devices = 1;  // of the whole fabric

  /// Whether a frame to that QP of the device is for this part.
  bool has(DeviceIndex of_device, QpNumber qp) const;
  /// Whether all QPs of that device but its first are another part's.
  bool is_without(DeviceIndex that) const { return of == Of::kDevice && that != device; }

  /// The QPNs that this part gives out. Those of the devices differ, so that a QPN tells its
  /// device.
  struct QpnRange {
    uint32_t first;
    uint32_t count;
  };
  QpnRange qpns() const;
  /// The device that has given out the QPN, if it is one's that has a part of its own.
  std::optional<DeviceIndex> device_with(QpNumber qp) const;

 private:
  uint32_t qpns_of_a_device() const;
};

}  // namespace rocemu::engine
