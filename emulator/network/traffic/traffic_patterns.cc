#include "emulator/network/traffic/traffic_patterns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "emulator/engine/base/random.h"

namespace rocemu::network {
namespace {

/// A size in bytes, and the fraction of flows that are not larger. Between two points, sizes are
/// evenly distributed.
struct SizePoint {
  double bytes;
  double part;
};

constexpr SizePoint kWebSearch[] = {
    {0, 0},           {10'000, 0.15},   {20'000, 0.2},      {30'000, 0.3},
    {50'000, 0.4},    {80'000, 0.53},   {200'000, 0.6},     {1'000'000, 0.7},
    {2'000'000, 0.8}, {5'000'000, 0.9}, {10'000'000, 0.97}, {30'000'000, 1},
};

double uniform(engine::Random& random) {
  return (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
}

uint64_t web_search_bytes(double part) {
  size_t i = 1;
  while (kWebSearch[i].part < part) ++i;
  const SizePoint& low = kWebSearch[i - 1];
  const SizePoint& high = kWebSearch[i];
  const double bytes =
      low.bytes + (part - low.part) / (high.part - low.part) * (high.bytes - low.bytes);
  return std::max<uint64_t>(1, static_cast<uint64_t>(bytes));
}

HostId other_host(engine::Random& random, HostId host, size_t hosts) {
  return static_cast<HostId>((host + 1 + random.next() % (hosts - 1)) % hosts);
}

}  // namespace

double web_search_mean_bytes() {
  double mean = 0;
  for (size_t i = 1; i < std::size(kWebSearch); ++i) {
    mean += (kWebSearch[i].part - kWebSearch[i - 1].part) *
            (kWebSearch[i].bytes + kWebSearch[i - 1].bytes) / 2;
  }
  return mean;
}

std::vector<FlowSpec> web_search(const Topology& topology, uint64_t seed, double load,
                                 Duration duration) {
  engine::Random random(seed);
  const size_t hosts = topology.hosts.size();
  double bits_per_second = 0;
  for (const Link& link : topology.links) {
    if (!link.a.is_switch || !link.b.is_switch)
      bits_per_second += static_cast<double>(link.rate_bps);
  }
  const double interval_ns = web_search_mean_bytes() * 8e9 / (bits_per_second * load);
  std::vector<FlowSpec> flows;
  double at_ns = 0;
  while (true) {
    at_ns += -std::log(uniform(random)) * interval_ns;
    if (at_ns >= static_cast<double>(duration.count())) return flows;
    const auto from = static_cast<HostId>(random.next() % hosts);
    flows.push_back({.from = from,
                     .to = other_host(random, from, hosts),
                     .bytes = web_search_bytes(uniform(random)),
                     .start = Instant(Duration(static_cast<int64_t>(at_ns)))});
  }
}

std::vector<FlowSpec> incast(const Topology& topology, uint64_t seed, uint32_t senders,
                             uint64_t bytes, uint32_t rounds, Duration interval) {
  engine::Random random(seed);
  const size_t hosts = topology.hosts.size();
  std::vector<FlowSpec> flows;
  for (uint32_t round = 0; round < rounds; ++round) {
    const auto to = static_cast<HostId>(random.next() % hosts);
    std::vector<HostId> from(hosts);
    std::iota(from.begin(), from.end(), 0u);
    from.erase(from.begin() + to);
    for (size_t i = 0; i < std::min<size_t>(senders, from.size()); ++i) {
      std::swap(from[i], from[i + random.next() % (from.size() - i)]);
      flows.push_back(
          {.from = from[i], .to = to, .bytes = bytes, .start = Instant(interval * round)});
    }
  }
  return flows;
}

// Uses Sattolo's algorithm, whose permutation is a single cycle of all hosts, so that no host sends
// to itself.
std::vector<FlowSpec> permutation(const Topology& topology, uint64_t seed, uint64_t bytes) {
  engine::Random random(seed);
  std::vector<HostId> to(topology.hosts.size());
  std::iota(to.begin(), to.end(), 0u);
  for (size_t i = to.size() - 1; i > 0; --i) std::swap(to[i], to[random.next() % i]);
  std::vector<FlowSpec> flows;
  for (HostId from = 0; from < to.size(); ++from)
    flows.push_back({.from = from, .to = to[from], .bytes = bytes, .start = {}});
  return flows;
}

}  // namespace rocemu::network
