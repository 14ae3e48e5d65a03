// A device that is pulled out while programs use it: for them it is broken, for its peers dead.
#include "emulator/engine/fabric.h"

namespace rocemu::engine {

// ibv_get_async_event(3): IBV_EVENT_DEVICE_FATAL, "CA is in FATAL state". As when Linux loses a
// driver: the objects are gone at once and nothing completes any more, but the clients keep their
// connections to the device, on which every command fails with EIO.
void Fabric::remove_device(DeviceIndex index) {
  Device& gone = device(index);
  if (gone.removed) return;
  gone.removed = true;
  gone.port_state = abi::PortState::kDown;
  connections.forget(index);
  for (const auto& [client, of] : clients) {
    if (of != index) continue;
    raise(client, abi::EventType::kDeviceFatal, 0);
    outputs_->list.emplace_back(DeviceLost{client});
  }
  for (const auto& [client, of] : clients) {
    if (of == index) release_objects(client);
  }
  // Those that were inherited from one client by the next.
  pds.for_each([&](const ProtectionDomain& pd) {
    if (clients.at(pd.client) == index) pds.destroy(pd.id);
  });
}

bool Fabric::has_lost_its_device(ClientId client) const {
  const auto found = clients.find(client);
  return found != clients.end() && devices_[found->second.value].removed;
}

}  // namespace rocemu::engine
