// Which shard of a fabric an engine is. With a thread for each device, each device has an engine of
// its own, with its clients and their objects. One more engine has every device's QP 1, and with
// them the connection manager. Frames pass from one shard to another.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

struct Shard {
  enum class Of : uint8_t { kAll, kConnections, kDevice };
  Of of = Of::kAll;
  DeviceIndex device{};  // kDevice
  uint32_t devices = 1;  // of the whole fabric

  /// True if a frame to that QP of the device is for this shard.
  bool has(DeviceIndex of_device, QpNumber qp) const;
  /// True if another shard has all QPs of that device except QP 1.
  bool is_without(DeviceIndex that) const { return of == Of::kDevice && that != device; }

  /// The QPNs that this shard allocates. Each device has a range of its own, so a QPN tells its
  /// device.
  struct QpnRange {
    uint32_t first;
    uint32_t count;
  };
  QpnRange qpns() const;
  /// Returns the device that owns this QPN, or nullopt if the fabric is not sharded.
  std::optional<DeviceIndex> device_with(QpNumber qp) const;

 private:
  uint32_t qpns_of_a_device() const;
};

}  // namespace rocemu::engine
