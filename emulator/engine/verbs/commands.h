// Control requests: creating, changing and destroying objects. What a request may hold wrongly is
// the application's mistake and answered with the errno its man page names.
#pragma once

#include "emulator/engine/fabric.h"

namespace rocemu::engine {

abi::Reply execute(Fabric& fabric, ClientId client, const abi::Request& request);

}  // namespace rocemu::engine
