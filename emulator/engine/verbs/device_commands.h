// Control requests about a device and its port.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each of these functions fills in the reply's body. It returns 0, or the errno value that its man
// page names.

int query_device(const Device& device, abi::DeviceAttr& attr);
int query_port(const Device& device, uint32_t port, abi::PortAttr& attr);

}  // namespace rocemu::engine
