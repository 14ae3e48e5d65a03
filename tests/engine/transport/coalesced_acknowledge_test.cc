// Tests that messages that were posted together get one acknowledgement (IBTA vol 1, 9.7.5.1.2;
// FabricConfig::ack_coalescing).
#include <gmock/gmock.h>
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

engine::FabricConfig two_devices(uint32_t ack_coalescing) {
  engine::FabricConfig fabric = engine::default_fabric(2);
  fabric.ack_coalescing = ack_coalescing;
  return fabric;
}

struct World {
  explicit World(uint32_t ack_coalescing, const EndpointOptions& receiver = {},
                 const EndpointOptions& sender = {})
      : bench(two_devices(ack_coalescing)),
        left(bench, engine::ClientId{1}, engine::DeviceIndex{0}, sender),
        right(bench, engine::ClientId{2}, engine::DeviceIndex{1}, receiver) {
    const auto& devices = engine::default_fabric(2).devices;
    EXPECT_TRUE(bring_up(left.client, left.qpn, abi::QpState::kRts, {},
                         address_vector(devices[1].addresses[0]), right.qpn));
    EXPECT_TRUE(bring_up(right.client, right.qpn, abi::QpState::kRts, {},
                         address_vector(devices[0].addresses[0]), left.qpn));
  }
  /// Posts `count` SENDs in one input and returns the sender's completions.
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
  Endpoint left, right;
};

std::vector<WcStatus> statuses_of(const std::vector<abi::Cqe>& done) {
  std::vector<WcStatus> out;
  for (const abi::Cqe& cqe : done) out.push_back(static_cast<WcStatus>(cqe.status));
  return out;
}

void expect_all_in_order(const std::vector<abi::Cqe>& done, uint32_t count) {
  ASSERT_EQ(done.size(), count);
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(done[i].wr_id, i);
    EXPECT_EQ(done[i].status, static_cast<uint32_t>(WcStatus::kSuccess));
  }
}

TEST(JoinedAcknowledgements, OneIsForAllMessagesInARow) {
  World world(16);
  world.receive(16);
  expect_all_in_order(world.send(16), 16);
  EXPECT_EQ(world.acknowledgements(), 1u);
  EXPECT_EQ(completions_of(world.bench.log, engine::ClientId{2}).size(), 16u);
}

// Sender and receiver alternate. A sender's turn has sixteen packets, and the receiver's first turn
// follows the sender's second one.
TEST(JoinedAcknowledgements, TheReceiverHasItsTurnMeanwhile) {
  World world(16);
  world.receive(40);
  expect_all_in_order(world.send(40), 40);
  EXPECT_EQ(world.acknowledgements(), 3u);  // one each for 16, 16 and 8 messages
}

TEST(JoinedAcknowledgements, EachMessageHasItsOwnInOtherFabrics) {
  World world(1);
  world.receive(16);
  expect_all_in_order(world.send(16), 16);
  EXPECT_EQ(world.acknowledgements(), 16u);
}

TEST(JoinedAcknowledgements, OneAcknowledgesAtMostTheConfiguredNumberOfMessages) {
  World world(4);
  world.receive(14);
  expect_all_in_order(world.send(14), 14);
  EXPECT_EQ(world.acknowledgements(), 4u);  // one each for 4, 4, 4 and 2 messages
}

// Rules for frames do not change which frames are sent.
TEST(JoinedAcknowledgements, ARuleFindsTheOneForAllMessages) {
  World world(16);
  world.bench.step(engine::AddRules{
      scenario::parse_rule("{on: frame, opcode: ACK, nth: 1, count: 1, do: drop}")});
  world.receive(5);
  EXPECT_THAT(world.send(5), testing::IsEmpty());
  EXPECT_EQ(completions_of(world.bench.log, engine::ClientId{2}).size(), 5u);
  EXPECT_EQ(world.acknowledgements(), 1u);
  // the sender repeats a request, and gets another acknowledgement for all messages
  world.bench.advance_to(60s);
  expect_all_in_order(completions_of(world.bench.log, engine::ClientId{1}), 5);
}

// The RNR NAK also acknowledges the messages before the message that found no receive (9.7.5.2.8).
TEST(JoinedAcknowledgements, ANakAcknowledgesAllMessagesBeforeIt) {
  World world(16);
  world.receive(3);
  expect_all_in_order(world.send(5), 3);
  EXPECT_EQ(world.acknowledgements(), 1u);
  world.receive(2);
  world.bench.advance_to(10ms);
  expect_all_in_order(completions_of(world.bench.log, engine::ClientId{1}), 5);
}

TEST(JoinedAcknowledgements, AMessageThatCannotBeSentFailsBehindThoseBeforeIt) {
  World world(16);
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

// IBTA vol 1, 9.7.5.1.2: received messages are acknowledged, whatever ends the QP after them. The
// message whose completion finds the CQ full is not acknowledged, wherever it is among the
// messages, and with or without joined acknowledgements.
TEST(JoinedAcknowledgements, AnOverrunOfTheCqIsAcknowledgedUpToTheMessageBeforeIt) {
  for (const bool joins : {true, false}) {
    for (const uint32_t srq_wr : {0u, 64u}) {
      for (const uint32_t room : {1u, 3u, 4u, 15u}) {
        SCOPED_TRACE("joins " + std::to_string(joins) + ", SRQ " + std::to_string(srq_wr) +
                     ", room " + std::to_string(room));
        EndpointOptions options;
        options.cq_capacity = room;
        options.srq_wr = srq_wr;
        World world(joins ? 16 : 1, options);
        world.receive(32);
        expect_all_in_order(world.send(16), room);
        EXPECT_EQ(completions_of(world.bench.log, engine::ClientId{2}).size(), room);
        EXPECT_EQ(world.right.state(), abi::QpState::kErr);
        EXPECT_EQ(world.left.state(), abi::QpState::kRts);
        // After the overrun, the receiver answers nothing.
        world.bench.advance_to(60s);
        std::vector<WcStatus> expected(room, WcStatus::kSuccess);
        expected.push_back(WcStatus::kRetryExcErr);
        expected.resize(16, WcStatus::kWrFlushErr);
        EXPECT_EQ(statuses_of(completions_of(world.bench.log, engine::ClientId{1})), expected);
      }
    }
  }
}

/// An action by which a receiver disappears between two steps, when it has completions of messages
/// and more messages are still arriving.
struct Leaves {
  const char* name;
  void (*act)(Endpoint& receiver);
};

class ReceiverThatLeaves : public testing::TestWithParam<Leaves> {};

TEST_P(ReceiverThatLeaves, HasAcknowledgedAllReceivedMessages) {
  constexpr uint32_t kMessages = 200;
  EndpointOptions options;
  options.cap.max_send_wr = options.cap.max_recv_wr = kMessages;
  World world(16, options, options);
  world.receive(kMessages);
  std::vector<std::byte> wqes;
  for (uint32_t i = 0; i < kMessages; ++i) {
    const auto wqe = send_wqe({.wr_id = i, .sges = {world.left.send_sge(8)}}, options.cap);
    wqes.insert(wqes.end(), wqe.begin(), wqe.end());
  }
  // A step sends a limited number of frames, so it ends while messages are left.
  world.bench.step_once(
      engine::PostSend{engine::ClientId{1}, engine::QpNumber{world.left.qpn}, wqes});
  const size_t had = completions_of(world.bench.log, engine::ClientId{2}).size();
  ASSERT_GT(had, completions_of(world.bench.log, engine::ClientId{1}).size());
  ASSERT_LT(had, kMessages);
  GetParam().act(world.right);
  world.bench.advance_to(60s);
  size_t succeeded = 0;
  for (const WcStatus status : statuses_of(completions_of(world.bench.log, engine::ClientId{1}))) {
    if (status == WcStatus::kSuccess) ++succeeded;
  }
  EXPECT_EQ(succeeded, had);
}

INSTANTIATE_TEST_SUITE_P(
    By, ReceiverThatLeaves,
    testing::Values(
        Leaves{"Error", [](Endpoint& at) { at.client.set_state(at.qpn, abi::QpState::kErr); }},
        Leaves{"Reset", [](Endpoint& at) { at.client.set_state(at.qpn, abi::QpState::kReset); }},
        Leaves{"Destroying", [](Endpoint& at) { at.client.destroy_qp(at.qpn); }},
        Leaves{"Dying", [](Endpoint& at) { at.bench().detach(at.client.id()); }}),
    [](const auto& one) { return one.param.name; });

TEST(PostSend, OfNotAWholeNumberOfWqesEndsTheClient) {
  World world(16);
  const std::vector<std::byte> half(100);
  world.bench.log.clear();
  world.bench.step(engine::PostSend{engine::ClientId{1}, engine::QpNumber{world.left.qpn}, half});
  ASSERT_EQ(world.bench.log.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<engine::ClientViolation>(world.bench.log.front().output));
}

}  // namespace
}  // namespace rocemu::test
