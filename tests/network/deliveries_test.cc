// Tests Network::next_delivery(): a caller that advances the network only at that time misses no
// delivery, and does not wake up on an idle network.
#include <gtest/gtest.h>

#include "tests/network/harness.h"
#include "tests/network/random_network.h"

namespace rocemu::network::testing {
namespace {

using namespace std::chrono_literals;

/// Advances to the time of each possible delivery, until `end`. Returns the number of these steps.
int run_by_deliveries(Network& network, Log& log, Instant end) {
  int wakes = 0;
  while (const std::optional<Instant> next = network.next_delivery()) {
    if (*next > end) break;
    ++wakes;
    const size_t deliveries = log.deliveries.size();
    network.advance(*next, log);
    for (size_t i = deliveries; i < log.deliveries.size(); ++i)
      EXPECT_EQ(log.deliveries[i].at, *next) << "a delivery was late";
  }
  network.advance(end, log);
  return wakes;
}

TEST(NextDelivery, IsTheArrivalOfAFrameOnAnIdlePath) {
  Network network(leaf_spine(2, 1, 1, Patterns()), 1);
  network.track_deliveries();
  network.inject({.token = 1, .from = 0, .to = 1, .bytes_on_wire = 1086}, at_ns(1000));
  // The path has four links of 100 Gbit/s and 500 ns; a byte takes 80 ps.
  EXPECT_EQ(network.next_delivery(), at_ns(1000 + 4 * 500 + (4 * 1086 * 80 + 999) / 1000));
  Log log;
  EXPECT_EQ(run_by_deliveries(network, log, at_ns(1'000'000)), 1);
  EXPECT_EQ(log.deliveries.size(), 1u);
  EXPECT_FALSE(network.next_delivery());
}

TEST(NextDelivery, OfFramesInARowIsOneForEach) {
  Topology topology = star(2);
  topology.nic.queue_bytes = 1u << 30;
  Network network(topology, 1);
  network.track_deliveries();
  for (uint64_t i = 0; i < 100; ++i)
    network.inject({.token = i, .from = 0, .to = 1, .bytes_on_wire = 1250}, at_ns(0));
  Log log;
  EXPECT_EQ(run_by_deliveries(network, log, at_ns(1'000'000)), 100);  // 100 ns apart
  EXPECT_EQ(log.deliveries.size(), 100u);
}

TEST(NextDelivery, IsNoneForAFrameThatIsPausedForGood) {
  Network network(star(2), 1);
  network.track_deliveries();
  network.set_pause_storm(1, 3, true, at_ns(0));
  Log log;
  network.advance(at_ns(10'000), log);
  network.inject({.token = 1, .from = 0, .to = 1, .bytes_on_wire = 84}, at_ns(10'000));
  run_by_deliveries(network, log, at_ns(1'000'000));
  EXPECT_TRUE(log.deliveries.empty());
  EXPECT_EQ(network.packets_in_flight(), 1u);
  EXPECT_FALSE(network.next_delivery());
  network.set_pause_storm(1, 3, false, at_ns(1'000'000));
  run_by_deliveries(network, log, at_ns(2'000'000));
  EXPECT_EQ(log.deliveries.size(), 1u);
}

// Each network, with its traffic and faults, is advanced once event by event and once delivery by
// delivery.
TEST(NextDelivery, MissesNothingInRandomNetworks) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Log logs[2];
    for (int way = 0; way < 2; ++way) {
      RandomNetwork random(seed);
      const Topology topology = random.topology();
      Network network(topology, seed);
      if (way == 1) network.track_deliveries();
      Instant now{};
      for (uint64_t token = 0; token < 1000; ++token) {
        now += Duration(static_cast<int64_t>(random.below(400)));
        if (way == 0) network.advance(now, logs[0]);
        if (way == 1) run_by_deliveries(network, logs[1], now);
        network.inject(random.packet(topology, token), now);
        if (random.below(50) == 0) random.fault(network, now);
      }
      if (way == 0) run(network, logs[0], at_ns(20'000'000));
      if (way == 1) run_by_deliveries(network, logs[1], at_ns(20'000'000));
    }
    EXPECT_EQ(logs[0].deliveries, logs[1].deliveries) << "seed " << seed;
    EXPECT_EQ(logs[0].losses, logs[1].losses) << "seed " << seed;
    EXPECT_EQ(logs[0].resumed, logs[1].resumed) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rocemu::network::testing
