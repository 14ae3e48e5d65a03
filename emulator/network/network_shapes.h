// The usual shapes of networks.
#pragma once

#include "emulator/network/network_topology.h"

namespace rocemu::network {

/// The parameters that nodes and links of a built topology have.
struct Patterns {
  SwitchParameters switches;
  Link hosts;   // between host and switch
  Link trunks;  // between switches
};

/// `hosts` hosts at one switch.
Topology star(uint32_t hosts, const Patterns& patterns = {});
/// Two switches with a trunk between them, and hosts at each: 0 to left-1 are at the first.
Topology dumbbell(uint32_t left, uint32_t right, const Patterns& patterns = {});
/// Each leaf has `hosts_per_leaf` hosts and a link to every spine.
Topology leaf_spine(uint32_t leaves, uint32_t spines, uint32_t hosts_per_leaf,
                    const Patterns& patterns = {});
/// The three levels of Al-Fares et al., SIGCOMM 2008: k pods, k^3/4 hosts. `k` is even.
Topology fat_tree(uint32_t k, const Patterns& patterns = {});
/// `switches` switches in a ring, with `hosts_per_switch` hosts at each.
Topology ring(uint32_t switches, uint32_t hosts_per_switch, const Patterns& patterns = {});

}  // namespace rocemu::network
