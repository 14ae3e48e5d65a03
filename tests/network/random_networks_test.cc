// Random networks, traffic and faults: what holds for all of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/engine/base/random.h"
#include "tests/network/harness.h"

namespace rocemu::network::testing {
namespace {

using namespace std::chrono_literals;

class RandomNetwork {
 public:
  explicit RandomNetwork(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t limit) { return random_.next() % limit; }
  bool coin() { return below(2) == 0; }

  /// A connected network: a tree of switches with further links.
  Topology topology() {
    Topology result;
    const uint64_t switches = 1 + below(8);
    for (uint64_t i = 0; i < switches; ++i) {
      result.switches.push_back({"s" + std::to_string(i), {}});
      SwitchParameters& at = result.switches.back().parameters;
      at.buffer_bytes = 4'000'000 + below(4'000'000);
      if (coin()) at.pfc = {.xoff_bytes = 20'000 + below(80'000), .xon_bytes = below(20'000)};
      if (coin())
        at.ecn = {.kmin_bytes = below(10'000), .kmax_bytes = 10'000 + below(90'000), .pmax = 0.5};
      if (i > 0)
        add_link(result, {true, static_cast<uint32_t>(below(i))}, static_cast<uint32_t>(i));
    }
    for (uint64_t i = below(2 * switches); i > 0 && switches > 1; --i) {
      const auto a = static_cast<uint32_t>(below(switches));
      const auto b = static_cast<uint32_t>(below(switches));
      if (a != b) add_link(result, {true, a}, b);
    }
    const uint64_t hosts = 2 + below(12);
    for (uint32_t i = 0; i < hosts; ++i) {
      result.hosts.push_back({"h" + std::to_string(i)});
      add_link(result, {false, i}, static_cast<uint32_t>(below(switches)));
    }
    result.routing = coin() ? Routing::kShortest : Routing::kUpDown;
    return result;
  }

  Packet packet(const Topology& topology, uint64_t token) {
    const auto hosts = topology.hosts.size();
    const auto from = static_cast<HostId>(below(hosts));
    return {.token = token,
            .from = from,
            .to = static_cast<HostId>((from + 1 + below(hosts - 1)) % hosts),
            .bytes_on_wire = 84 + static_cast<uint32_t>(below(4117)),
            .flow_hash = static_cast<uint32_t>(random_.next()),
            .dscp = static_cast<uint8_t>(coin() ? 0 : 48),
            .ecn = static_cast<uint8_t>(below(4)),
            .ttl = 64};
  }

  void fault(Network& network, Instant now) {
    const auto link = static_cast<LinkId>(below(network.topology().links.size()));
    const auto at = static_cast<SwitchId>(below(network.topology().switches.size()));
    switch (below(5)) {
      case 0:
        return network.set_link_state(link, coin(), now);
      case 1:
        return network.set_link_rate(link, 1 + below(100'000'000'000), now);
      case 2:
        return network.set_corruption(link, 0.1);
      case 3:
        return network.reboot_switch(at, Duration(static_cast<int64_t>(below(50'000))), now);
      case 4:
        return network.set_pause_storm(static_cast<HostId>(below(network.topology().hosts.size())),
                                       3, coin(), now);
    }
  }

 private:
  void add_link(Topology& topology, NodeRef a, uint32_t b) {
    topology.links.push_back({.a = a,
                              .b = {true, b},
                              .rate_bps = 1'000'000'000 + below(400'000'000'000),
                              .delay = Duration(static_cast<int64_t>(below(3000)))});
  }

  engine::Random random_;
};

struct Recorded {
  Log log;
  uint64_t hops = 0;
  uint64_t left = 0;
};

/// Some 2,000 frames, and faults among them. All links are up at the end, and no host pauses.
Recorded play(uint64_t seed, bool with_faults) {
  RandomNetwork random(seed);
  const Topology topology = random.topology();
  for (const TopologyProblem& problem : check(topology))
    EXPECT_TRUE(problem.is_warning) << "seed " << seed << ": " << problem.message;
  Network network(topology, seed);
  network.observe_hops(true);
  Recorded result;
  Instant now{};
  for (uint64_t token = 0; token < 2000; ++token) {
    now += Duration(static_cast<int64_t>(random.below(400)));
    network.advance(now, result.log);
    network.inject(random.packet(topology, token), now);
    if (with_faults && random.below(50) == 0) random.fault(network, now);
  }
  if (with_faults) {
    now += 1ms;
    network.advance(now, result.log);
    for (LinkId i = 0; i < topology.links.size(); ++i) network.set_link_state(i, true, now);
    for (LinkId i = 0; i < topology.links.size(); ++i)
      network.set_link_rate(i, 100'000'000'000, now);
    for (HostId i = 0; i < topology.hosts.size(); ++i) network.set_pause_storm(i, 3, false, now);
  }
  run(network, result.log);
  result.hops = network.packet_hops();
  result.left = network.packets_in_flight();
  uint64_t buffered = 0;
  for (SwitchId i = 0; i < topology.switches.size(); ++i) buffered += network.buffered_bytes(i);
  EXPECT_EQ(result.left == 0, buffered == 0) << "seed " << seed;
  return result;
}

TEST(RandomNetworks, LoseNoFrameWithoutSayingSo) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    for (const bool with_faults : {false, true}) {
      const Recorded run = play(seed, with_faults);
      EXPECT_EQ(run.log.deliveries.size() + run.log.losses.size() + run.left, 2000u)
          << "seed " << seed;
      std::vector<uint64_t> tokens;
      for (const Delivery& one : run.log.deliveries) tokens.push_back(one.token);
      for (const Loss& one : run.log.losses) tokens.push_back(one.token);
      std::sort(tokens.begin(), tokens.end());
      EXPECT_EQ(std::adjacent_find(tokens.begin(), tokens.end()), tokens.end()) << "seed " << seed;
      EXPECT_TRUE(std::ranges::is_sorted(run.log.deliveries, {}, &Delivery::at)) << "seed " << seed;
      EXPECT_EQ(run.hops, run.log.hops.size()) << "seed " << seed;
    }
  }
}

TEST(RandomNetworks, AreTheSameEachTime) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Recorded a = play(seed, true);
    const Recorded b = play(seed, true);
    EXPECT_EQ(a.log.deliveries, b.log.deliveries) << "seed " << seed;
    EXPECT_EQ(a.log.losses, b.log.losses) << "seed " << seed;
    EXPECT_EQ(a.log.resumed, b.log.resumed) << "seed " << seed;
  }
}

// Time moves from event to event in one run, and in fixed steps in the other.
TEST(RandomNetworks, AreTheSameHoweverOftenTheyAreAdvanced) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Recorded runs[2];
    for (int way = 0; way < 2; ++way) {
      RandomNetwork random(seed);
      const Topology topology = random.topology();
      Network network(topology, seed);
      for (uint64_t token = 0; token < 500; ++token)
        network.inject(random.packet(topology, token), at_ns(0));
      if (way == 0) run(network, runs[0].log, at_ns(1'000'000));
      if (way == 1) network.advance(at_ns(1'000'000), runs[1].log);
    }
    EXPECT_EQ(runs[0].log.deliveries, runs[1].log.deliveries) << "seed " << seed;
    EXPECT_EQ(runs[0].log.losses, runs[1].log.losses) << "seed " << seed;
  }
}

TEST(RandomNetworks, NeedRoomForWhatIsInFlightOnly) {
  // A million frames one after another: never more than the two that the NIC's queue has room for,
  // what is on links, and what waits in the switch.
  Network network(star(2), 1);
  Saturation load(network, {{.from = 0, .to = 1, .bytes = 84, .frames = 100'000}});
  size_t most = 0;
  for (int64_t us = 1; us < 2000; ++us) {
    load.run_until(at_ns(us * 1000));
    most = std::max(most, network.packets_in_flight());
  }
  EXPECT_EQ(load.flows[0].delivered_frames, 100'000u);
  // 8192 bytes and one frame wait, and 1 us of 100 Gbit/s is 12,500 bytes on links.
  EXPECT_LE(most, 8192 / 84 + 2 + 12'500 / 84 + 4);
}

}  // namespace
}  // namespace rocemu::network::testing
