#include "emulator/engine/verbs/device_commands.h"

#include <algorithm>
#include <cerrno>

namespace rocemu::engine {

int query_device(const Device& device, abi::DeviceAttr& attr) {
  attr = device.config.profile->attr;
  attr.node_guid = attr.sys_image_guid = node_guid(device.config);
  return 0;
}

int query_port(const Device& device, uint32_t port, abi::PortAttr& attr) {
  if (port == 0 || port > device.config.profile->attr.phys_port_cnt) return EINVAL;
  constexpr uint8_t kLinkUp = 5, kDisabled = 3;
  attr = device.config.profile->port;
  attr.active_mtu = static_cast<uint32_t>(device.config.active_mtu);
  // Only the first port is connected.
  const abi::PortState state = port == 1 ? device.port_state : abi::PortState::kDown;
  attr.state = static_cast<uint32_t>(state);
  attr.phys_state = state == abi::PortState::kActive ? kLinkUp : kDisabled;
  if (port != 1) return 0;
  // IBTA vol 1, 14.2.5.6: violation counters have 16 bits, and stay at their maximum when they
  // reach it.
  const auto violations = [&](Counter counter) {
    return static_cast<uint32_t>(std::min<uint64_t>(device.counters.get(counter), 0xffff));
  };
  attr.bad_pkey_cntr = violations(Counter::kDroppedWrongPkey);
  attr.qkey_viol_cntr = violations(Counter::kDroppedWrongQkey);
  return 0;
}

}  // namespace rocemu::engine
