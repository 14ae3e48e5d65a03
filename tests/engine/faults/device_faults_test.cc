// Tests the effects of rules on a whole device, and rules that match a packet's PSN itself
// (docs/scenarios.md).
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/scenario/scenario.h"
#include "tests/engine/faults/rules.h"
#include "tests/support/event_channel.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using abi::EventType;
using abi::PortState;
using engine::DeviceIndex;

constexpr DeviceIndex kFirst{0};

std::vector<EventType> events_of(Bench& bench, engine::ClientId client) {
  std::vector<EventType> events;
  for (const Timed& timed : bench.log) {
    const auto* event = std::get_if<engine::AsyncEvent>(&timed.output);
    if (event != nullptr && event->client == client) events.push_back(event->type);
  }
  return events;
}

// ---- remove_device ------------------------------------------------------------------------------

// ibv_get_async_event(3): "IBV_EVENT_DEVICE_FATAL CA is in FATAL state".
TEST(RemovalByRule, IsAsThatByTheUser) {
  Pair pair;
  add_rules(pair.bench, "{on: frame, from: left, opcode: SEND, nth: 2, do: remove_device}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(100)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(100)}});
  EXPECT_TRUE(pair.bench.engine().has_device(kFirst));
  pair.left.post_send({.wr_id = 3, .sges = {pair.left.send_sge(100)}});
  EXPECT_FALSE(pair.bench.engine().has_device(kFirst));
  EXPECT_EQ(events_of(pair.bench, pair.left.client.id()), std::vector{EventType::kDeviceFatal});
  EXPECT_TRUE(pair.bench.engine().snapshot().devices[0].qps.empty());
  const bool told = std::ranges::any_of(pair.bench.log, [](const Timed& timed) {
    return std::holds_alternative<engine::DeviceChanged>(timed.output);
  });
  EXPECT_TRUE(told) << "the file system has to follow";
  pair.bench.log.clear();
}

// rdma_get_cm_event(3): "RDMA_CM_EVENT_DEVICE_REMOVAL The local RDMA device associated with the
// rdma_cm_id has been removed."
TEST(RemovalByRule, IsToldToTheIdsOfTheDevice) {
  CmBench bench;
  EventChannel channel(bench, 1);
  const uint32_t id = channel.create_id(7);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.1", 7471)), 0);
  bench.step(
      engine::AddRules{scenario::parse_rule("{on: now, device: rocemu0, do: remove_device}")});
  const auto event = channel.next_event();
  EXPECT_EQ(event.event, abi::ucma::EventType::kDeviceRemoval);
  EXPECT_EQ(event.id, id);
}

// ---- port: {down: TIME} -------------------------------------------------------------------------

// ibv_get_async_event(3): "IBV_EVENT_PORT_ERR Link became unavailable on a port",
// "IBV_EVENT_PORT_ACTIVE Link became active on a port".
TEST(PortFlap, ComesUpAgainAfterItsTime) {
  Pair pair;
  const auto port_state = [&] { return pair.bench.engine().snapshot().devices[0].port_state; };
  add_rules(pair.bench, "{on: now, device: left, do: {port: {down: 10ms}}}");
  EXPECT_EQ(port_state(), PortState::kDown);
  EXPECT_FALSE(pair.bench.engine().is_idle());
  pair.bench.advance_to(9ms);
  EXPECT_EQ(port_state(), PortState::kDown);
  pair.bench.advance_to(10ms);
  EXPECT_EQ(port_state(), PortState::kActive);
  EXPECT_TRUE(pair.bench.engine().is_idle());
  EXPECT_EQ(events_of(pair.bench, pair.left.client.id()),
            (std::vector{EventType::kPortErr, EventType::kPortActive}));
  pair.bench.log.clear();
}

TEST(PortFlap, TheLatestRuleCounts) {
  Pair pair;
  add_rules(pair.bench, "{name: a, on: now, device: left, do: {port: {down: 10ms}}}");
  add_rules(pair.bench, "{name: b, on: now, device: left, do: {port: down}}");
  pair.bench.advance_to(1s);
  EXPECT_EQ(pair.bench.engine().snapshot().devices[0].port_state, PortState::kDown);
  pair.bench.log.clear();
}

// ---- psn_num ------------------------------------------------------------------------------------

TEST(PsnNum, IsTheNumberInThePacket) {
  PairOptions options;
  options.left.connection.sq_psn = options.right.connection.rq_psn = 0xffffff;
  Pair pair(options);
  add_rules(pair.bench, "{on: frame, opcode: SEND, psn_num: 0, do: {duplicate: 1}}");
  for (uint64_t i = 1; i <= 3; ++i) {
    pair.right.post_recv({.wr_id = i, .sges = {pair.right.recv_sge(100)}});
    pair.left.post_send({.wr_id = i, .sges = {pair.left.send_sge(100)}});
    EXPECT_EQ(pair.bench.engine().rule_reports()[0].fired, i < 2 ? 0u : 1u);
  }
  EXPECT_EQ(pair.take_left().size(), 3u);
  pair.bench.log.clear();
}

// ---- is_idle ------------------------------------------------------------------------------------

TEST(Idle, ExcludesQpsThatWaitForAnAcknowledgement) {
  Pair pair;
  EXPECT_TRUE(pair.bench.engine().is_idle());
  add_rules(pair.bench, "{on: frame, opcode: ACK, nth: 1, do: drop}");
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(100)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(100)}});
  EXPECT_FALSE(pair.bench.engine().is_idle()) << "the acknowledgement was lost";
  pair.bench.advance_to(1s);
  EXPECT_EQ(pair.take_left().size(), 1u);
  EXPECT_TRUE(pair.bench.engine().is_idle());
  pair.bench.log.clear();
}

}  // namespace
}  // namespace rocemu::test
