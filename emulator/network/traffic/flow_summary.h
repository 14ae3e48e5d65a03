// Summarizes a run of synthetic flows: slowdowns of flows, utilization of links, and actions of
// switches.
#pragma once

#include <string>
#include <vector>

#include "emulator/network/traffic/flow_run.h"

namespace rocemu::network {

/// The slowdowns of flows whose sizes are in one range. The slowdown of a flow is its time divided
/// by its time on an idle network.
struct SlowdownRow {
  std::string sizes;  // "up to 100 KB"
  uint64_t flows = 0;
  double mean = 0;
  double median = 0;
  double p95 = 0;
  double p99 = 0;
  double mean_completion_us = 0;
};

struct LinkUse {
  std::string port;
  double utilization = 0;  // relative to its rate, over the run
  uint64_t high_water_bytes = 0;
  uint64_t ecn_marks = 0;
};

struct FlowSummary {
  uint64_t flows = 0;
  uint64_t completed = 0;
  Duration duration{};
  uint64_t packet_hops = 0;
  uint64_t payload_bytes = 0;
  uint64_t ecn_marks = 0;
  uint64_t cnps = 0;
  uint64_t pauses = 0;
  uint64_t drops = 0;
  uint64_t high_water_bytes = 0;  // the longest queue of a switch
  double mean_host_utilization = 0;
  double mean_trunk_utilization = 0;
  std::vector<SlowdownRow> slowdowns;  // for each range of sizes that has flows, and for all flows
  std::vector<LinkUse> busiest;        // some directions of links, busiest first
};

FlowSummary summarize(FlowRun& run, const Topology& topology);

}  // namespace rocemu::network
