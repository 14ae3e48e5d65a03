// Finds the parts of a network that rules of a scenario name.
#pragma once

#include <optional>
#include <string>

#include "emulator/engine/base/network_fault.h"
#include "emulator/network/network_topology.h"

namespace rocemu::network {

/// The part of a network in which a fault happens. One member is set; none if the network has no
/// part with that name.
struct FaultTarget {
  std::optional<LinkId> link;
  std::optional<SwitchId> switch_id;
  std::optional<HostId> host;
};

FaultTarget find_target(const Topology& topology, const engine::NetworkElement& element);

/// Returns the reason why the fault is impossible in the network, or an empty text if it is
/// possible.
std::string problem_of(const Topology& topology, const engine::NetworkElement& element,
                       const engine::NetworkChange& change);

}  // namespace rocemu::network
