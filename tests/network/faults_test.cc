// Tests faults of links, switches and NICs, ECMP, TTL and ECN.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/network/harness.h"

namespace rocemu::network::testing {
namespace {

using namespace std::chrono_literals;

Packet frame(uint64_t token, HostId from, HostId to, uint32_t hash = 0) {
  return {.token = token, .from = from, .to = to, .bytes_on_wire = 1000, .flow_hash = hash};
}

TEST(Link, LosesWhatIsOnItWhenItGoesDown) {
  const Topology topology = star(2);
  Network network(topology, 1);
  Log log;
  network.inject(frame(1, 0, 1), at_ns(0));
  network.advance(at_ns(100), log);  // until 580 ns, the frame is on the link of host 0
  network.set_link_state(*find_link(topology, "h0-s1"), false, at_ns(100));
  network.inject(frame(2, 0, 1), at_ns(100));
  run(network, log);
  ASSERT_EQ(log.losses.size(), 2u);
  EXPECT_EQ(log.losses[0], (Loss{2, 0, DropReason::kLinkDown}));
  EXPECT_EQ(log.losses[1].token, 1u);
  EXPECT_EQ(log.losses[1].why, DropReason::kLinkDown);
  network.set_link_state(0, true, at_ns(2000));
  network.inject(frame(3, 0, 1), at_ns(2000));
  run(network, log);
  ASSERT_EQ(log.deliveries.size(), 1u);
  EXPECT_EQ(log.deliveries[0].token, 3u);
}

TEST(Link, DownIsAvoidedByRoutes) {
  const Topology topology = leaf_spine(2, 2, 1);
  Network network(topology, 1);
  Log log;
  network.set_link_state(*find_link(topology, "leaf1-spine1"), false, at_ns(0));
  for (uint32_t i = 0; i < 64; ++i) network.inject(frame(i, 0, 1, i), at_ns(0));
  run(network, log);
  EXPECT_EQ(log.deliveries.size(), 64u);
  network.set_link_state(*find_link(topology, "leaf2-spine2"), false, log.deliveries.back().at);
  network.inject(frame(99, 0, 1), log.deliveries.back().at);
  run(network, log);
  ASSERT_EQ(log.losses.size(), 1u);
  EXPECT_EQ(log.losses[0].why, DropReason::kNoRoute);
}

TEST(Link, SlowTakesLonger) {
  Network network(star(2), 1);
  Log log;
  network.set_link_rate(1, 1'000'000'000, at_ns(0));
  network.inject(frame(1, 0, 1), at_ns(0));
  run(network, log);
  ASSERT_EQ(log.deliveries.size(), 1u);
  EXPECT_EQ(log.deliveries[0].at, at_ns(80 + 500 + 8000 + 500));
}

TEST(Link, CorruptsFramesWithItsProbability) {
  Topology topology = star(2);
  topology.nic.queue_bytes = 1u << 30;
  Network network(topology, 5);
  Log log;
  network.set_corruption(0, 0.25);
  for (uint64_t i = 0; i < 10'000; ++i) network.inject(frame(i, 0, 1), at_ns(0));
  run(network, log);
  // The number of losses is binomial, with a mean of 2500 and a standard deviation of 43.3.
  EXPECT_NEAR(static_cast<double>(log.losses.size()), 2500, 4 * 43.3);
  EXPECT_EQ(log.losses.front().why, DropReason::kCorrupted);
  EXPECT_EQ(log.losses.size() + log.deliveries.size(), 10'000u);
}

TEST(SwitchReboot, LosesItsFramesAndThenWorksAgain) {
  const Topology topology = star(3);
  Network network(topology, 1);
  Log log;
  for (uint64_t i = 0; i < 20; ++i) network.inject(frame(i, i % 2, 2), at_ns(0));
  network.advance(at_ns(1000), log);
  network.reboot_switch(0, 1ms, at_ns(1000));
  run(network, log, at_ns(500'000));
  EXPECT_FALSE(log.losses.empty());
  EXPECT_EQ(log.losses.size() + log.deliveries.size(), 20u);
  EXPECT_EQ(std::ranges::count(log.losses, DropReason::kSwitchDown, &Loss::why) > 0, true);
  EXPECT_EQ(network.buffered_bytes(0), 0u);
  run(network, log);
  network.inject(frame(50, 0, 2), at_ns(1'001'000));
  run(network, log);
  EXPECT_EQ(log.deliveries.back().token, 50u);
}

TEST(PauseStorm, StopsTheInnocentToo) {
  // Hosts 0 and 1 at switch s1 send to hosts 2 and 3 at switch s2, and host 3 pauses. The frames
  // that wait for host 3 use up s2's buffer for the trunk. Then s1 may not send to host 2 either.
  Patterns patterns;
  patterns.switches.pfc = {.xoff_bytes = 50'000, .xon_bytes = 30'000};
  Network network(dumbbell(2, 2, patterns), 1);
  network.set_pause_storm(3, 3, true, at_ns(0));
  Saturation load(network, {{.from = 0, .to = 2}, {.from = 1, .to = 3}});
  load.run_until(at_ns(1'000'000));
  load.forget();
  load.run_until(at_ns(5'000'000));
  EXPECT_EQ(load.flows[0].delivered_frames, 0u);
  network.set_pause_storm(3, 3, false, at_ns(5'000'000));
  load.run_until(at_ns(6'000'000));
  EXPECT_GT(load.flows[0].delivered_frames, 0u);
}

TEST(Ecmp, KeepsAFlowOnAPathAndSpreadsFlows) {
  const Topology topology = leaf_spine(2, 8, 1);
  Network network(topology, 1);
  network.observe_hops(true);
  Log log;
  std::map<uint64_t, std::set<PortId>> ports_of_flow;
  for (uint64_t i = 0; i < 1600; ++i)
    network.inject(frame(i, 0, 1, static_cast<uint32_t>(i % 400)), at_ns(0));
  run(network, log);
  std::map<PortId, int> flows_of_port;
  for (const Hop& hop : log.hops) {
    const PortInfo& port = network.port(hop.port);
    if (port.node == NodeRef{true, 0} && ports_of_flow[hop.token % 400].insert(hop.port).second)
      ++flows_of_port[hop.port];
  }
  for (const auto& [flow, ports] : ports_of_flow) EXPECT_EQ(ports.size(), 1u) << flow;
  EXPECT_EQ(flows_of_port.size(), 8u);
  // Each port gets 50 of the 400 flows, with a standard deviation of 6.6.
  for (const auto& [port, flows] : flows_of_port) EXPECT_NEAR(flows, 50, 4 * 6.6);
}

TEST(Ttl, IsDecrementedByRoutersOnly) {
  Patterns patterns;
  Network switched(dumbbell(1, 1, patterns), 1);
  patterns.switches.decrements_ttl = true;
  Network routed(dumbbell(1, 1, patterns), 1);
  Log log;
  Packet packet = frame(1, 0, 1);
  packet.ttl = 2;  // there are two routers, and the second one drops the packet (RFC 1812, 5.3.1)
  switched.inject(packet, at_ns(0));
  run(switched, log);
  EXPECT_EQ(log.deliveries.size(), 1u);
  routed.inject(packet, at_ns(0));
  run(routed, log);
  ASSERT_EQ(log.losses.size(), 1u);
  EXPECT_EQ(log.losses[0].why, DropReason::kTtlExpired);
  packet.ttl = 3;
  routed.inject(packet, at_ns(1'000'000));
  run(routed, log);
  EXPECT_EQ(log.deliveries.size(), 2u);
}

TEST(Ecn, MarksByTheQueueThatStaysBehind) {
  Patterns patterns;
  patterns.switches.ecn = {.kmin_bytes = 5000, .kmax_bytes = 5000, .pmax = 1};
  Network network(star(3, patterns), 1);
  Log log;
  for (uint64_t i = 0; i < 40; ++i) {
    Packet packet = frame(i, static_cast<HostId>(i % 2), 2);
    packet.ecn = i % 4 < 2 ? 2 : 0;  // 2 is ECT(0), 0 is not ECN-capable
    network.inject(packet, at_ns(0));
  }
  run(network, log);
  ASSERT_EQ(log.deliveries.size(), 40u);
  // Pair k arrives k serialization times after the first pair, and at each of these times a frame
  // begins to leave. So the queue grows by one frame each time, until frame 20 leaves; then it
  // shrinks. A frame is marked if more than 5 frames are behind it when it leaves.
  for (size_t i = 0; i < 40; ++i) {
    const uint64_t token = log.deliveries[i].token;
    // The first frame of a pair begins to leave before the second one has arrived.
    const size_t arrived = std::min<size_t>(2 * i + 1, 40);
    const size_t behind = arrived - (i + 1);
    EXPECT_EQ(log.deliveries[i].is_marked, behind > 5 && token % 4 < 2) << i;
  }
}

TEST(Ecn, MarksInProportionBetweenTheThresholds) {
  // The queue has a fixed length of 100 frames of 1000 bytes, which is a quarter of the way from
  // kmin to kmax. With a pmax of 0.4, the probability is 0.1.
  Patterns patterns;
  patterns.switches.ecn = {.kmin_bytes = 75'000, .kmax_bytes = 175'000, .pmax = 0.4};
  Topology topology = star(3, patterns);
  topology.nic.queue_bytes = 1u << 30;
  Network network(topology, 3);
  Log log;
  // Host 1 fills the queue with 101 frames. In addition, the frames of host 0 keep its length
  // constant.
  for (uint64_t i = 0; i < 101; ++i) network.inject(frame(100'000, 1, 2), at_ns(0));
  for (uint64_t i = 0; i < 20'000; ++i) {
    Packet packet = frame(i, 0, 2);
    packet.ecn = 2;
    network.inject(packet, at_ns(0));
  }
  run(network, log);
  double marked = 0, counted = 0;
  for (size_t i = 500; i < 19'500; ++i) {
    ++counted;
    marked += log.deliveries[i].is_marked;
  }
  // The share of 19,000 frames has a standard deviation of 0.0022.
  EXPECT_NEAR(marked / counted, 0.1, 4 * 0.0022);
}

TEST(Ecn, ThresholdsCanBeSetWrongly) {
  Network network(star(3), 1);
  network.set_ecn(0, EcnThresholds{.kmin_bytes = 0, .kmax_bytes = 0, .pmax = 1});
  Saturation load(network, {{.from = 0, .to = 2}, {.from = 1, .to = 2}});
  load.run_until(at_ns(100'000));
  EXPECT_GT(load.flows[0].marked_frames, 0u);
  network.set_ecn(0, std::nullopt);
  load.run_until(at_ns(200'000));
  load.forget();
  load.run_until(at_ns(300'000));
  EXPECT_EQ(load.flows[0].marked_frames, 0u);
}

}  // namespace
}  // namespace rocemu::network::testing
