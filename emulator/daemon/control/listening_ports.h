// Checks whether a program listens on a port. Scripts use this to wait for a server before they
// start its client.
#pragma once

#include <cstdint>

#include "emulator/engine/snapshot.h"

namespace rocemu::daemon {

/// Returns whether a program listens on the port, either with rdma_listen(3), or with TCP in the
/// daemon's network namespace.
bool listens(const engine::FabricSnapshot& fabric, uint16_t port);

}  // namespace rocemu::daemon
