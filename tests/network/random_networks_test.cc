// Tests invariants of random networks with random traffic and faults.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/network/harness.h"
#include "tests/network/random_network.h"

namespace rocemu::network::testing {
namespace {

using namespace std::chrono_literals;

struct Recorded {
  Log log;
  uint64_t hops = 0;
  uint64_t left = 0;
};

/// Sends about 2,000 frames, with faults. At the end, all links are up and no host pauses.
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

// One run advances from event to event, the other one in fixed steps of time.
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

TEST(RandomNetworks, NeedMemoryForFramesInFlightOnly) {
  // Sends 100,000 frames one after another. At any time, only those in the NIC's queue, on links,
  // and in the switch need memory.
  Network network(star(2), 1);
  Saturation load(network, {{.from = 0, .to = 1, .bytes = 84, .frames = 100'000}});
  size_t most = 0;
  for (int64_t us = 1; us < 2000; ++us) {
    load.run_until(at_ns(us * 1000));
    most = std::max(most, network.packets_in_flight());
  }
  EXPECT_EQ(load.flows[0].delivered_frames, 100'000u);
  // At most 8192 bytes and one frame wait in the queue. The links hold 1 us, which at 100 Gbit/s is
  // 12,500 bytes.
  EXPECT_LE(most, 8192 / 84 + 2 + 12'500 / 84 + 4);
}

}  // namespace
}  // namespace rocemu::network::testing
