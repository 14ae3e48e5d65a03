// The engine's services for the connection manager and for librdmacm's side: the time, the devices,
// and the sending of frames
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "emulator/engine/base/counters.h"
#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/config.h"
#include "emulator/engine/objects/devices.h"
#include "emulator/engine/step.h"
#include "emulator/engine/transport/transmitter.h"
#include "wire/ip_address.h"
#include "wire/packet.h"

namespace rocemu::engine::cm {

class Environment {
 public:
  /// All arguments must outlive this object.
  Environment(const Step& step, Duration link_latency, Devices& devices, Transmitter& transmitter)
      : step_(step), link_latency_(link_latency), devices_(devices), transmitter_(transmitter) {}

  Instant now() const { return step_.now(); }
  Duration link_latency() const { return link_latency_; }

  // ---- Devices: index 0 to device_count() - 1 ----
  uint32_t device_count() const { return devices_.count(); }
  const DeviceConfig& config(DeviceIndex device) const { return devices_[device].config; }
  bool is_removed(DeviceIndex device) const { return devices_[device].removed; }
  std::optional<DeviceIndex> device_with_address(const wire::IpAddress& address) const {
    return devices_.with_address(address);
  }
  void count(DeviceIndex device, Counter counter) const { devices_[device].counters.add(counter); }

  // ---- Frames ----
  Frame allocate_frame() const { return transmitter_.allocate(); }
  /// Sends `frame`, whose payload of `payload_size` bytes is in place. `inside` is the destination
  /// device, if it is in the fabric.
  void send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
            size_t payload_size, Frame frame, const Resend& resend) const {
    transmitter_.send(from, inside, packet, payload_size, std::move(frame), resend);
  }

 private:
  const Step& step_;
  Duration link_latency_;
  Devices& devices_;
  Transmitter& transmitter_;
};

}  // namespace rocemu::engine::cm
