// Builds networks of the usual shapes.
#pragma once

#include "emulator/network/network_topology.h"

namespace rocemu::network {

/// The parameters of the nodes and links of a topology that is built here.
struct Patterns {
  SwitchParameters switches;
  Link hosts;   // between host and switch
  Link trunks;  // between switches
};

/// Returns a switch with `hosts` hosts.
Topology star(uint32_t hosts, const Patterns& patterns = {});
/// Returns two switches that are connected by a trunk. Hosts 0 to left-1 are at the first switch,
/// the others at the second.
Topology dumbbell(uint32_t left, uint32_t right, const Patterns& patterns = {});
/// Returns leaves with `hosts_per_leaf` hosts each, and a link from every leaf to every spine.
Topology leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                    const Patterns& patterns = {});
/// Returns the three levels of Al-Fares et al., SIGCOMM 2008: k pods, k^3/4 hosts. `k` must be
/// even.
Topology fat_tree(uint32_t k, const Patterns& patterns = {});
/// Returns a ring of `switches` switches with `hosts_per_switch` hosts each.
Topology ring(uint32_t switches, uint32_t hosts_per_switch, const Patterns& patterns = {});

}  // namespace rocemu::network
