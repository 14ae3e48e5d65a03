// Generates the usual patterns of synthetic traffic. The same seed gives the same traffic.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/network/traffic/flow_run.h"

namespace rocemu::network {

/// Returns flows between random hosts at random times. Their sizes are those in a cluster that
/// answers web searches: Alizadeh et al., "Data Center TCP", SIGCOMM 2010, figure 4, as in the
/// traffic generator of HPCC (SIGCOMM 2019). `load` is the mean utilization of the hosts' links.
std::vector<FlowSpec> web_search(const Topology& topology, uint64_t seed, double load,
                                 Duration duration);
/// Returns the mean size of the flows of web_search() in bytes.
double web_search_mean_bytes();
/// Returns flows in rounds: in each round, `senders` hosts send to one host at the same time. Each
/// round has a different receiver.
std::vector<FlowSpec> incast(const Topology& topology, uint64_t seed, uint32_t senders,
                             uint64_t bytes, uint32_t rounds, Duration interval);
/// Returns flows in which each host sends to one other host, and each host receives from exactly
/// one host.
std::vector<FlowSpec> permutation(const Topology& topology, uint64_t seed, uint64_t bytes);

}  // namespace rocemu::network
