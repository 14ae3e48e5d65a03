#include "emulator/network/traffic/flow_summary.h"

#include <algorithm>
#include <cmath>

namespace rocemu::network {
namespace {

constexpr size_t kBusiestLinks = 5;

struct SizeRange {
  const char* text;
  uint64_t most_bytes;
};

constexpr SizeRange kSizeRanges[] = {
    {"up to 10 KB", 10'000},     {"up to 100 KB", 100'000},       {"up to 1 MB", 1'000'000},
    {"up to 10 MB", 10'000'000}, {"more than 10 MB", UINT64_MAX},
};

/// Returns the percentile by the nearest-rank method.
double percentile(const std::vector<double>& sorted, double part) {
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

struct Completed {
  double slowdown;
  double us;
};

SlowdownRow row_of(std::string text, const std::vector<Completed>& flows) {
  SlowdownRow row;
  row.sizes = std::move(text);
  row.flows = flows.size();
  if (flows.empty()) return row;
  std::vector<double> slowdowns;
  for (const Completed& one : flows) {
    slowdowns.push_back(one.slowdown);
    row.mean += one.slowdown / static_cast<double>(flows.size());
    row.mean_completion_us += one.us / static_cast<double>(flows.size());
  }
  std::sort(slowdowns.begin(), slowdowns.end());
  row.median = percentile(slowdowns, 0.5);
  row.p95 = percentile(slowdowns, 0.95);
  row.p99 = percentile(slowdowns, 0.99);
  return row;
}

void add_slowdowns(const FlowRun& run, FlowSummary& summary) {
  std::vector<std::vector<Completed>> of_range(std::size(kSizeRanges));
  std::vector<Completed> all;
  for (size_t i = 0; i < run.results().size(); ++i) {
    const FlowResult& flow = run.results()[i];
    summary.cnps += flow.cnps;
    summary.payload_bytes += flow.received_bytes;
    if (!flow.is_complete) continue;
    const auto took = static_cast<double>((flow.end - flow.spec.start).count());
    const Completed one{took / static_cast<double>(std::max<int64_t>(1, run.alone(i).count())),
                        took / 1000};
    size_t range = 0;
    while (flow.spec.bytes > kSizeRanges[range].most_bytes) ++range;
    of_range[range].push_back(one);
    all.push_back(one);
  }
  for (size_t i = 0; i < of_range.size(); ++i)
    if (!of_range[i].empty()) summary.slowdowns.push_back(row_of(kSizeRanges[i].text, of_range[i]));
  summary.slowdowns.push_back(row_of("all", all));
}

}  // namespace

FlowSummary summarize(FlowRun& run, const Topology& topology) {
  FlowSummary summary;
  summary.flows = run.results().size();
  summary.completed = run.completed();
  for (const FlowResult& flow : run.results())
    if (flow.is_complete)
      summary.duration = std::max(summary.duration, flow.end.time_since_epoch());
  if (summary.completed < summary.flows) summary.duration = run.now().time_since_epoch();
  const Network& network = run.network();
  summary.packet_hops = network.packet_hops();
  add_slowdowns(run, summary);
  const double seconds = std::max(1e-9, static_cast<double>(summary.duration.count()) * 1e-9);
  double host_sum = 0, trunk_sum = 0;
  size_t host_count = 0, trunk_count = 0;
  for (PortId port = 0; port < network.port_count(); ++port) {
    const PortInfo& info = network.port(port);
    LinkUse use;
    uint64_t bytes = 0;
    for (uint8_t i = 0; i < kPriorities; ++i) {
      const PriorityCounters& counters = network.counters(port, i);
      bytes += counters.tx_bytes;
      use.ecn_marks += counters.ecn_marks;
      summary.pauses += counters.tx_pauses;
      summary.drops += counters.drops;
      use.high_water_bytes = std::max(use.high_water_bytes, counters.queue_high_water_bytes);
    }
    use.utilization =
        static_cast<double>(bytes) * 8 / seconds / static_cast<double>(network.rate_bps(info.link));
    use.port = port_name(topology, info);
    summary.ecn_marks += use.ecn_marks;
    const bool is_trunk = info.node.is_switch && network.port(info.peer).node.is_switch;
    (is_trunk ? trunk_sum : host_sum) += use.utilization;
    ++(is_trunk ? trunk_count : host_count);
    if (!info.node.is_switch) continue;
    summary.high_water_bytes = std::max(summary.high_water_bytes, use.high_water_bytes);
    summary.busiest.push_back(std::move(use));
  }
  if (host_count != 0) summary.mean_host_utilization = host_sum / static_cast<double>(host_count);
  if (trunk_count != 0)
    summary.mean_trunk_utilization = trunk_sum / static_cast<double>(trunk_count);
  std::stable_sort(
      summary.busiest.begin(), summary.busiest.end(),
      [](const LinkUse& a, const LinkUse& b) { return a.utilization > b.utilization; });
  if (summary.busiest.size() > kBusiestLinks) summary.busiest.resize(kBusiestLinks);
  return summary;
}

}  // namespace rocemu::network
