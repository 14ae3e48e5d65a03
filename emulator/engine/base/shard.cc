#include "emulator/engine/base/shard.h"

#include "emulator/engine/base/limits.h"
#include "wire/cm/mad.h"

namespace rocemu::engine {
namespace {

/// 24 bits, of which the last says "all of a multicast group".
constexpr uint32_t kEndOfQpns = 0xffffff;

}  // namespace

bool Shard::has(DeviceIndex of_device, QpNumber qp) const {
  if (of == Of::kAll) return true;
  if (qp.value == wire::kGsiQpn) return of == Of::kConnections;
  return of == Of::kDevice && of_device == device;
}

uint32_t Shard::qpns_of_a_device() const {
  return (kEndOfQpns - kFirstQpn) / devices;
}

Shard::QpnRange Shard::qpns() const {
  if (of != Of::kDevice) return {kFirstQpn, kEndOfQpns - kFirstQpn};
  return {kFirstQpn + device.value * qpns_of_a_device(), qpns_of_a_device()};
}

std::optional<DeviceIndex> Shard::device_with(QpNumber qp) const {
  if (of != Of::kDevice || qp.value < kFirstQpn) return std::nullopt;
  const uint32_t index = (qp.value - kFirstQpn) / qpns_of_a_device();
  if (index >= devices) return std::nullopt;
  return DeviceIndex{index};
}

}  // namespace rocemu::engine
