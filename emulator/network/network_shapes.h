// Builds the topologies of networks with the usual shapes.
#pragma once

#include "emulator/network/network_topology.h"

namespace rocemu::network {

/// The parameters that all nodes and links of a built topology have.
struct Patterns {
  SwitchParameters switches;
  Link hosts;   // between host and switch
  Link trunks;  // between switches
};

/// Returns a topology with one switch, to which `hosts` hosts are connected.
Topology star(uint32_t hosts, const Patterns& patterns = {});
/// Returns two switches that are connected by a trunk. Hosts 0 to left-1 are at the first switch,
/// the others at the second.
Topology dumbbell(uint32_t left, uint32_t right, const Patterns& patterns = {});
/// Returns a leaf-spine topology, with `hosts_per_leaf` hosts at each leaf, and a link from every
/// leaf to every spine.
Topology leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                    const Patterns& patterns = {});
/// Returns the three-level fat tree of Al-Fares et al., SIGCOMM 2008, with k pods and k^3/4 hosts.
/// `k` must be even.
Topology fat_tree(uint32_t k, const Patterns& patterns = {});
/// Returns a ring of `switches` switches, with `hosts_per_switch` hosts at each switch.
Topology ring(uint32_t switches, uint32_t hosts_per_switch, const Patterns& patterns = {});

}  // namespace rocemu::network
