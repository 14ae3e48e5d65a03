// Control requests about multicast groups.
#pragma once

#include "emulator/engine/fabric.h"

namespace rocemu::engine {

// Each returns 0, or the errno value that its man page names.

int attach_mcast(Fabric& fabric, ClientId client, const abi::Request::Body& in);
int detach_mcast(Fabric& fabric, ClientId client, const abi::Request::Body& in);

}  // namespace rocemu::engine
