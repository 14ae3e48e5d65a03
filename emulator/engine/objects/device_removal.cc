// A device that is pulled out while programs use it: for them it is broken, for its peers dead.
#include <algorithm>

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
    step_.emit(DeviceLost{client});
  }
  for (const auto& [client, of] : clients) {
    const bool departs =
        std::ranges::find(leaving_, client, &LeavingClient::client) != leaving_.end();
    if (of == index && !departs) leaving_.push_back({.client = client, .detached = false});
  }
  release_leaving();
  for (const LeavingClient& leaving : leaving_) silence(leaving.client);
}

bool Fabric::has_lost_its_device(ClientId client) const {
  const auto found = clients.find(client);
  return found != clients.end() && devices_[found->second.value].removed;
}

}  // namespace rocemu::engine
