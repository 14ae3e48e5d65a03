// Checks whether PFC can cause a deadlock: whether frames can wait in a cycle of ports, each for
// room at the next port.
#pragma once

#include <vector>

#include "emulator/network/network_topology.h"

namespace rocemu::network {

/// Returns switch ports that can wait for each other in a cycle: each port for the next one, and
/// the last for the first. Returns an empty list if the routes have no such cycle, so that PFC
/// cannot deadlock (Dally and Seitz, 1987: the graph of channel dependencies has no cycle).
std::vector<PortId> find_buffer_cycle(const Topology& topology);

}  // namespace rocemu::network
