// Tests when frames arrive on an idle path. By the store-and-forward formula, each link of the path
// takes bytes * 8 / rate, and its delay.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/network/harness.h"

namespace rocemu::network::testing {
namespace {

using namespace std::chrono_literals;

int64_t ceil_ns(uint64_t picoseconds) {
  return static_cast<int64_t>((picoseconds + 999) / 1000);
}

TEST(Latency, OfAnIdleStarIsTwoSerializationsAndTwoDelays) {
  Network network(star(2), 1);  // 100 Gbit/s (80 ps per byte), and 500 ns
  Log log;
  network.inject({.token = 7, .from = 0, .to = 1, .bytes_on_wire = 1086}, at_ns(1000));
  run(network, log);
  ASSERT_EQ(log.deliveries.size(), 1u);
  EXPECT_EQ(log.deliveries[0],
            (Delivery{7, 1, at_ns(1000 + ceil_ns(2 * (1086 * 80 + 500'000))), false}));
  EXPECT_EQ(network.packets_in_flight(), 0u);
  EXPECT_FALSE(network.next_event());
}

TEST(Latency, AddsUpOverLinksOfDifferentRates) {
  Patterns patterns;
  patterns.hosts.rate_bps = 25'000'000'000;  // 320 ps
  patterns.hosts.delay = 100ns;
  patterns.trunks.rate_bps = 400'000'000'000;  // 20 ps
  patterns.trunks.delay = 5us;
  Network network(leaf_spine(2, 1, 1, patterns), 1);
  Log log;
  network.inject({.token = 1, .from = 0, .to = 1, .bytes_on_wire = 4200}, at_ns(0));
  run(network, log);
  ASSERT_EQ(log.deliveries.size(), 1u);
  EXPECT_EQ(log.deliveries[0].at,
            at_ns(ceil_ns(2 * (4200 * 320 + 100'000) + 2 * (4200 * 20 + 5'000'000))));
}

TEST(Latency, CarriesFractionsOfPicosecondsFromFrameToFrame) {
  Patterns patterns;
  // a prime number, so that no byte takes whole picoseconds
  patterns.hosts.rate_bps = 7'000'000'007;
  patterns.hosts.delay = 0ns;
  Topology topology = star(2, patterns);
  topology.nic.queue_bytes = 1u << 30;
  Network network(topology, 1);
  Log log;
  constexpr uint64_t kFrames = 100'000;
  for (uint64_t i = 0; i < kFrames; ++i)
    network.inject({.token = i, .from = 0, .to = 1, .bytes_on_wire = 1500}, at_ns(0));
  run(network, log);
  ASSERT_EQ(log.deliveries.size(), kFrames);
  // After the last frame has left the NIC, the switch needs the time of one more frame to forward
  // it. If the time of each frame was rounded to a picosecond, the sum would be wrong by up to 50
  // ns.
  const long double ns_of_one = 1500.0L * 8e9L / 7'000'000'007.0L;
  const auto expected = static_cast<int64_t>(std::ceil(ns_of_one * (kFrames + 1)));
  EXPECT_NEAR(static_cast<double>(log.deliveries.back().at.time_since_epoch().count()),
              static_cast<double>(expected), 1.0);
}

TEST(Latency, OfTwoHostsAtOneCableIsOneSerialization) {
  Topology topology;
  topology.hosts = {{"a"}, {"b"}};
  topology.links = {{.a = {false, 0}, .b = {false, 1}, .rate_bps = 10'000'000'000, .delay = 7ns}};
  Network network(topology, 1);
  Log log;
  network.inject({.token = 1, .from = 1, .to = 0, .bytes_on_wire = 84}, at_ns(0));
  run(network, log);
  ASSERT_EQ(log.deliveries.size(), 1u);
  EXPECT_EQ(log.deliveries[0].at, at_ns(ceil_ns(84 * 800 + 7000)));
}

TEST(Latency, OfASmallFrameBehindABulkFlowIsTheQueueBeforeIt) {
  Network network(star(3), 1);
  Log log;
  // Hosts 0 and 2 send to host 1: host 0 sends ten large frames, and host 2 sends a small one and a
  // large one. The small frame arrives at the switch before the first large one, and leaves first.
  for (uint64_t i = 0; i < 10; ++i)
    network.inject({.token = i, .from = 0, .to = 1, .bytes_on_wire = 4200}, at_ns(0));
  network.inject({.token = 99, .from = 2, .to = 1, .bytes_on_wire = 84}, at_ns(0));
  network.inject({.token = 100, .from = 2, .to = 1, .bytes_on_wire = 4200}, at_ns(0));
  run(network, log);
  ASSERT_EQ(log.deliveries.size(), 12u);
  EXPECT_EQ(log.deliveries[0].token, 99u);
  EXPECT_EQ(log.deliveries[0].at, at_ns(ceil_ns(2 * (84 * 80 + 500'000))));
  // Frame 100 arrives when the port is sending the first frame of host 0, which arrived 84 bytes
  // earlier.
  EXPECT_EQ(log.deliveries[1].token, 0u);
  EXPECT_EQ(log.deliveries[1].at, at_ns(ceil_ns(2 * (4200 * 80 + 500'000))));
  EXPECT_EQ(log.deliveries[2].token, 100u);
  EXPECT_EQ(log.deliveries[2].at, at_ns(ceil_ns(3 * 4200 * 80 + 2 * 500'000)));
}

TEST(Hops, AreObservedWhereAFrameBeginsToLeave) {
  const Topology topology = star(2);
  Network network(topology, 1);
  network.observe_hops(true);
  Log log;
  network.inject({.token = 5, .from = 0, .to = 1, .bytes_on_wire = 1000}, at_ns(0));
  run(network, log);
  ASSERT_EQ(log.hops.size(), 2u);
  EXPECT_EQ(port_name(topology, network.port(log.hops[0].port)), "h0");
  EXPECT_EQ(log.hops[0].at, at_ns(0));
  EXPECT_EQ(port_name(topology, network.port(log.hops[1].port)), "s1:1");
  EXPECT_EQ(log.hops[1].at, at_ns(80 + 500));
  EXPECT_EQ(network.packet_hops(), 2u);
}

}  // namespace
}  // namespace rocemu::network::testing
