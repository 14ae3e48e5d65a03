// Messages that are posted together, and one acknowledgement for all of them (IBTA vol
// 1, 9.7.5.1.2; FabricConfig::joins_acknowledgements).
#include <gtest/gtest.h>

#include <vector>

#include "emulator/scenario/scenario.h"
#include "tests/support/endpoint.h"
#include "tests/support/matchers.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::WcStatus;
using engine::Counter;

engine::FabricConfig two_devices(bool joins) {
  engine::FabricConfig fabric = engine::default_fabric(2);
  fabric.joins_acknowledgements = joins;
  return fabric;
}

struct World {
  explicit World(bool joins) : bench(two_devices(joins)) {
    const auto& devices = engine::default_fabric(2).devices;
    EXPECT_TRUE(bring_up(left.client, left.qpn, abi::QpState::kRts, {},
                         address_vector(devices[1].addresses[0]), right.qpn));
    EXPECT_TRUE(bring_up(right.client, right.qpn, abi::QpState::kRts, {},
                         address_vector(devices[0].addresses[0]), left.qpn));
  }
  /// Posts so many SENDs in one input and returns the sender's completions.
  std::vector<abi::Cqe> send(uint32_t count, uint32_t length = 8) {
    std::vector<SendWr> wrs;
    for (uint32_t i = 0; i < count; ++i) {
      wrs.push_back({.wr_id = i, .sges = {left.send_sge(length)}});
    }
    left.client.post_sends(left.qpn, wrs);
    return completions_of(bench.log, engine::ClientId{1});
  }
  void receive(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      right.post_recv({.wr_id = 100 + i, .sges = {right.recv_sge(8192)}});
    }
  }
  uint64_t acknowledgements() { return counter(bench.engine(), Counter::kFramesOut, 1); }

  Bench bench;
  Endpoint left{bench, engine::ClientId{1}, engine::DeviceIndex{0}, {}};
  Endpoint right{bench, engine::ClientId{2}, engine::DeviceIndex{1}, {}};
};

void expect_all_in_order(const std::vector<abi::Cqe>& done, uint32_t count) {
  ASSERT_EQ(done.size(), count);
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(done[i].wr_id, i);
    EXPECT_EQ(done[i].status, static_cast<uint32_t>(WcStatus::kSuccess));
  }
}

TEST(JoinedAcknowledgements, OneIsForAllMessagesInARow) {
  World world(true);
  world.receive(16);
  expect_all_in_order(world.send(16), 16);
  EXPECT_EQ(world.acknowledgements(), 1u);
  EXPECT_EQ(completions_of(world.bench.log, engine::ClientId{2}).size(), 16u);
}

// Sixteen packets are a turn; the receiver's first one is behind the sender's second.
TEST(JoinedAcknowledgements, TheReceiverHasItsTurnMeanwhile) {
  World world(true);
  world.receive(40);
  expect_all_in_order(world.send(40), 40);
  EXPECT_EQ(world.acknowledgements(), 2u);
}

TEST(JoinedAcknowledgements, EachMessageHasItsOwnElsewhere) {
  World world(false);
  world.receive(16);
  expect_all_in_order(world.send(16), 16);
  EXPECT_EQ(world.acknowledgements(), 16u);
}

TEST(JoinedAcknowledgements, EachMessageHasItsOwnWhileARuleIsForFrames) {
  World world(true);
  world.bench.step(
      engine::AddRules{scenario::parse_rule("{on: frame, opcode: ACK, psn_num: 77, do: drop}")});
  world.receive(5);
  expect_all_in_order(world.send(5), 5);
  EXPECT_EQ(world.acknowledgements(), 5u);
}

// What was received before the receiver was not ready is acknowledged by that NAK (9.7.5.2.8).
TEST(JoinedAcknowledgements, ANakIsForAllBeforeItAsWell) {
  World world(true);
  world.receive(3);
  expect_all_in_order(world.send(5), 3);
  EXPECT_EQ(world.acknowledgements(), 1u);
  world.receive(2);
  world.bench.advance_to(10ms);
  expect_all_in_order(completions_of(world.bench.log, engine::ClientId{1}), 5);
}

TEST(JoinedAcknowledgements, AMessageThatCannotBeSentFailsBehindThoseBeforeIt) {
  World world(true);
  world.receive(3);
  abi::Sge nowhere = world.left.send_sge(8);
  nowhere.lkey ^= 0x100;
  world.left.client.post_sends(world.left.qpn, {{.wr_id = 0, .sges = {world.left.send_sge(8)}},
                                                {.wr_id = 1, .sges = {nowhere}},
                                                {.wr_id = 2, .sges = {world.left.send_sge(8)}}});
  const auto done = completions_of(world.bench.log, engine::ClientId{1});
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kSuccess));
  EXPECT_EQ(done[1].status, static_cast<uint32_t>(WcStatus::kLocProtErr));
  EXPECT_EQ(done[2].status, static_cast<uint32_t>(WcStatus::kWrFlushErr));
}

TEST(PostSend, OfNotAWholeNumberOfWqesEndsTheClient) {
  World world(true);
  const std::vector<std::byte> half(100);
  world.bench.log.clear();
  world.bench.step(engine::PostSend{engine::ClientId{1}, engine::QpNumber{world.left.qpn}, half});
  ASSERT_EQ(world.bench.log.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<engine::ClientViolation>(world.bench.log.front().output));
}

}  // namespace
}  // namespace rocemu::test
