// Checks whether PFC can deadlock: whether frames in ports can wait in a cycle for room at the next
// port.
#pragma once

#include <vector>

#include "emulator/network/network_topology.h"

namespace rocemu::network {

/// Returns switch ports that can wait for each other in this order, the last one for the first.
/// Returns nothing if the routes have no such cycle, so that PFC cannot deadlock (Dally and Seitz,
/// 1987: the graph of channel dependencies has no cycle).
std::vector<PortId> find_buffer_cycle(const Topology& topology);

}  // namespace rocemu::network
