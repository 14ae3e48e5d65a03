// A device's port goes up and down.
#pragma once

#include "emulator/engine/objects/async_events.h"
#include "emulator/engine/objects/objects.h"

namespace rocemu::engine {

/// Tells the device's clients. Nothing happens if the port is so already, or the device is gone.
void set_port(Objects& objects, AsyncEvents& events, DeviceIndex index, bool up);

}  // namespace rocemu::engine
