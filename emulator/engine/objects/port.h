// Sets a device's port up or down.
#pragma once

#include "emulator/engine/objects/async_events.h"
#include "emulator/engine/objects/objects.h"

namespace rocemu::engine {

/// Sets the port up or down, and notifies the device's clients. Does nothing if the port already is
/// in this state, or the device was removed.
void set_port(Objects& objects, AsyncEvents& events, DeviceIndex index, bool up);

}  // namespace rocemu::engine
