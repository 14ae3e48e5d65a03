// Tests that consecutive packets of a message within a fabric are written to the application's
// memory together, and that programs cannot detect this, even after errors.
#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::WcStatus;
using abi::WrOpcode;

constexpr uint32_t kMtu = 1024;

PairOptions options(abi::QpType type = abi::QpType::kRc, uint32_t srq_wr = 0) {
  PairOptions options;
  for (EndpointOptions* side : {&options.left, &options.right}) {
    side->connection.type = type;
    side->connection.mtu = abi::Mtu::k1024;
    side->connection.access = abi::kAccessRemoteWrite | abi::kAccessRemoteRead;
    side->connection.max_rd_atomic = 1;
    side->recv_access = abi::kAccessLocalWrite | abi::kAccessRemoteWrite | abi::kAccessRemoteRead;
    side->srq_wr = srq_wr;
  }
  return options;
}

SendWr transfer(const Pair& pair, WrOpcode opcode, uint32_t length) {
  return {.wr_id = 7,
          .opcode = opcode,
          .sges = {pair.left.send_sge(length)},
          .remote_address = Endpoint::kRecvBuffer,
          .rkey = pair.right.recv_mr.rkey};
}

uint64_t writes_of(Pair& pair, const SendWr& wr) {
  const uint64_t before = pair.bench.memory.writes;
  pair.left.post_send(wr);
  return pair.bench.memory.writes - before;
}

WcStatus only_status(const std::vector<abi::Cqe>& cqes) {
  EXPECT_EQ(cqes.size(), 1u);
  return cqes.empty() ? WcStatus::kGeneralErr : static_cast<WcStatus>(cqes[0].status);
}

TEST(PacketRun, APartOfAMessageThatIsSentInOneTurnIsWrittenInOneCall) {
  for (const auto type : {abi::QpType::kRc, abi::QpType::kUc}) {
    Pair pair(options(type));
    const auto message = pattern(40 * kMtu);
    pair.left.fill_send_buffer(message);
    pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64 * kMtu)}});
    EXPECT_EQ(writes_of(pair, transfer(pair, WrOpcode::kSend, 40 * kMtu)), 3u);
    EXPECT_EQ(only_status(pair.take_right()), WcStatus::kSuccess);
    EXPECT_EQ(only_status(pair.take_left()), WcStatus::kSuccess);
    EXPECT_EQ(pair.right.recv_bytes(40 * kMtu), message);

    const auto other = pattern(40 * kMtu - 1, 2);
    pair.left.fill_send_buffer(other);
    EXPECT_EQ(writes_of(pair, transfer(pair, WrOpcode::kRdmaWrite, 40 * kMtu - 1)), 3u);
    EXPECT_EQ(pair.right.recv_bytes(40 * kMtu - 1), other);
  }
}

TEST(PacketRun, TheDataOfAReadIsWrittenInOneCallForEachTurn) {
  Pair pair(options());
  const auto message = pattern(20 * kMtu, 3);
  std::ranges::copy(message, pair.right.memory()
                                 .at(pair.right.client.id(), Endpoint::kRecvBuffer, message.size())
                                 .begin());
  SendWr read = transfer(pair, WrOpcode::kRdmaRead, 20 * kMtu);
  read.sges = {pair.left.recv_sge(20 * kMtu)};
  EXPECT_EQ(writes_of(pair, read), 2u);
  EXPECT_EQ(only_status(pair.take_left()), WcStatus::kSuccess);
  EXPECT_EQ(pair.left.recv_bytes(20 * kMtu), message);
}

// The message uses one WQE of the SRQ, and the SRQ's limit is counted as usual.
TEST(PacketRun, AMessageTakesOneWqeOfAnSrq) {
  Pair pair(options(abi::QpType::kRc, 4));
  for (uint64_t i = 0; i < 2; ++i) {
    pair.right.post_recv({.wr_id = i, .sges = {pair.right.recv_sge(8 * kMtu, i * 8 * kMtu)}});
  }
  const auto message = pattern(8 * kMtu);
  pair.left.fill_send_buffer(message);
  for (uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(writes_of(pair, transfer(pair, WrOpcode::kSend, 8 * kMtu)), 1u);
    const auto done = pair.take_right();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].wr_id, i);
    EXPECT_EQ(pair.right.recv_bytes(8 * kMtu, i * 8 * kMtu), message);
  }
}

// The memory for the first packets exists, and they are received; the memory for a later packet
// does not exist.
TEST(PacketRun, MemoryThatIsNotThereIsFoundByThePacketThatMeetsIt) {
  Pair pair(options());
  constexpr uint64_t kHole = 0x30000000;
  pair.right.memory().map(pair.right.client.id(), kHole, 4 * kMtu);
  const Mr hole = pair.right.client.reg_mr(pair.right.pd, kHole, 4 * kMtu, abi::kAccessLocalWrite);
  pair.right.memory().unmap(pair.right.client.id(), kHole);
  const auto message = pattern(8 * kMtu);
  pair.left.fill_send_buffer(message);
  pair.right.post_recv(
      {.wr_id = 1, .sges = {pair.right.recv_sge(2 * kMtu), {kHole, 4 * kMtu, hole.lkey}}});
  // For each of the first three packets, the engine first tries to write all remaining data, which
  // fails, and then writes the packet alone; the third packet fails as well.
  EXPECT_EQ(writes_of(pair, transfer(pair, WrOpcode::kSend, 6 * kMtu)), 6u);
  EXPECT_EQ(only_status(pair.take_right()), WcStatus::kLocProtErr);
  EXPECT_EQ(only_status(pair.take_left()), WcStatus::kRemOpErr);
  EXPECT_TRUE(
      std::ranges::equal(pair.right.recv_bytes(2 * kMtu), std::span(message).first(2 * kMtu)));
}

TEST(PacketRun, AMessageThatIsTooLongIsRefused) {
  Pair pair(options());
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(5 * kMtu)}});
  pair.left.post_send(transfer(pair, WrOpcode::kSend, 8 * kMtu));
  EXPECT_EQ(only_status(pair.take_right()), WcStatus::kLocLenErr);
  EXPECT_EQ(only_status(pair.take_left()), WcStatus::kRemInvReqErr);
}

TEST(PacketRun, NothingIsWrittenThroughAKeyThatDoesNotAllowIt) {
  for (const uint32_t beyond : {0u, 1u}) {
    Pair pair(options());
    SendWr write = transfer(pair, WrOpcode::kRdmaWrite, 8 * kMtu);
    beyond != 0 ? write.remote_address += 64 * kMtu - 4 * kMtu : write.rkey ^= 1;
    EXPECT_EQ(writes_of(pair, write), 0u);
    EXPECT_EQ(only_status(pair.take_left()), WcStatus::kRemAccessErr);
  }
}

// For its peer, a process that ended is like a NIC that has failed: nothing is acknowledged.
TEST(PacketRun, AProcessThatEndedDoesNotAnswer) {
  Pair pair(options());
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(16 * kMtu)}});
  pair.bench.memory.gone.insert(pair.right.client.id());
  pair.left.post_send(transfer(pair, WrOpcode::kSend, 8 * kMtu));
  EXPECT_TRUE(pair.take_right().empty());
  EXPECT_TRUE(pair.take_left().empty());
  EXPECT_NE(pair.bench.engine().next_deadline(), std::nullopt);
}

}  // namespace
}  // namespace rocemu::test
