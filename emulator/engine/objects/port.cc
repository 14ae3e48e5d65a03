#include "emulator/engine/objects/port.h"

namespace rocemu::engine {

// Raises IBV_EVENT_PORT_ACTIVE or IBV_EVENT_PORT_ERR, which contain the port number
// (ibv_get_async_event(3)).
void set_port(Objects& objects, AsyncEvents& events, DeviceIndex index, bool up) {
  Device& device = objects.devices[index];
  if (device.port_is_up() == up || device.removed) return;
  if (!up) device.counters.add(Counter::kLinkDowns);
  device.port_state = up ? abi::PortState::kActive : abi::PortState::kDown;
  objects.clients.for_each_of(index, [&](ClientId client) {
    events.raise(client, up ? abi::EventType::kPortActive : abi::EventType::kPortErr, 1);
  });
}

}  // namespace rocemu::engine
