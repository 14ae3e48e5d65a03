// Generates the usual patterns of synthetic traffic from a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/network/traffic/flow_run.h"

namespace rocemu::network {

/// Returns flows between random hosts at random times, with the sizes of a cluster that answers web
/// searches: Alizadeh et al., "Data Center TCP", SIGCOMM 2010, figure 4, as in the traffic
/// generator of HPCC (SIGCOMM 2019). `load` is the load of the hosts' links.
std::vector<FlowSpec> web_search(const Topology& topology, uint64_t seed, double load,
                                 Duration duration);
/// Returns the mean size of the flows of web_search() in bytes.
double web_search_mean_bytes();
/// Returns flows in which `senders` hosts send to one host at once. Each round has another
/// receiver.
std::vector<FlowSpec> incast(const Topology& topology, uint64_t seed, uint32_t senders,
                             uint64_t bytes, uint32_t rounds, Duration interval);
/// Returns flows in which each host sends to another host, and each host receives from one.
std::vector<FlowSpec> permutation(const Topology& topology, uint64_t seed, uint64_t bytes);

}  // namespace rocemu::network
