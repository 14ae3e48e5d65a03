// Tests short messages whose data the provider put into the send WQE, behind the list of SGEs, or
// into a slot that the WQE names. The engine reads nothing from the application's memory; nothing
// else differs from other messages.
#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::WcStatus;

class CarriedData : public testing::Test {
 protected:
  CarriedData() {
    pair_.left.fill_send_buffer(in_memory_);
    pair_.right.post_recv({.wr_id = 1, .sges = {pair_.right.recv_sge(4096)}});
  }

  SendWr send(std::vector<abi::Sge> sges, std::vector<uint8_t> carried) {
    return {.wr_id = 7, .sges = std::move(sges), .inline_data = std::move(carried)};
  }
  WcStatus only_status(const std::vector<abi::Cqe>& cqes) {
    EXPECT_EQ(cqes.size(), 1u);
    return cqes.empty() ? WcStatus::kGeneralErr : static_cast<WcStatus>(cqes[0].status);
  }
  uint64_t reads_of(const SendWr& wr) {
    const uint64_t before = pair_.bench.memory.reads;
    pair_.left.post_send(wr);
    return pair_.bench.memory.reads - before;
  }

  Pair pair_{PairOptions{}};
  std::vector<uint8_t> in_memory_ = pattern(4096);
};

TEST_F(CarriedData, IsSentWithoutAReadOfMemory) {
  const auto data = pattern(abi::kMaxCarried, 9);
  EXPECT_EQ(reads_of(send({pair_.left.send_sge(abi::kMaxCarried)}, data)), 0u);
  EXPECT_EQ(only_status(pair_.take_right()), WcStatus::kSuccess);
  EXPECT_EQ(only_status(pair_.take_left()), WcStatus::kSuccess);
  EXPECT_EQ(pair_.right.recv_bytes(abi::kMaxCarried), data);
}

TEST_F(CarriedData, CanComeFromAListOfSeveralEntries) {
  const auto data = pattern(50, 9);
  EXPECT_EQ(reads_of(send({pair_.left.send_sge(20), pair_.left.send_sge(30)}, data)), 0u);
  EXPECT_EQ(pair_.right.recv_bytes(50), data);
}

TEST_F(CarriedData, IsSentAgainAfterALoss) {
  JoinedPair pair;
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(4096)}});
  const auto data = pattern(64, 9);
  const uint64_t reads_before = pair.left_bench.memory.reads;
  pair.drop_next(FrameKind::kRequest);
  pair.left.post_send(send({pair.left.send_sge(64)}, data));
  pair.run_until(10s);
  EXPECT_EQ(only_status(pair.take_left()), WcStatus::kSuccess);
  EXPECT_EQ(pair.right.recv_bytes(64), data);
  EXPECT_EQ(pair.left_bench.memory.reads, reads_before);
}

TEST_F(CarriedData, NeedsAValidKey) {
  abi::Sge sge = pair_.left.send_sge(64);
  sge.lkey ^= 1;
  pair_.left.post_send(send({sge}, pattern(64, 9)));
  EXPECT_EQ(only_status(pair_.take_left()), WcStatus::kLocProtErr);
}

TEST_F(CarriedData, NeedsARegisteredRange) {
  abi::Sge sge = pair_.left.send_sge(64);
  sge.address -= 1;
  pair_.left.post_send(send({sge}, pattern(64, 9)));
  EXPECT_EQ(only_status(pair_.take_left()), WcStatus::kLocProtErr);
}

// A client may write any size. The data in the WQE is used only if its size is that of the whole
// message and the message is short.
TEST_F(CarriedData, IsIgnoredIfItsSizeDiffers) {
  for (const uint32_t lie : {1u, 63u, 65u, 176u}) {
    EXPECT_EQ(reads_of(send({pair_.left.send_sge(64)}, std::vector<uint8_t>(lie, 0xee))), 1u);
    EXPECT_EQ(only_status(pair_.take_right()), WcStatus::kSuccess);
    EXPECT_TRUE(std::ranges::equal(pair_.right.recv_bytes(64), std::span(in_memory_).first(64)));
    pair_.right.post_recv({.wr_id = 1, .sges = {pair_.right.recv_sge(4096)}});
  }
  const uint32_t longer = abi::kMaxCarried + 1;
  EXPECT_EQ(reads_of(send({pair_.left.send_sge(longer)}, std::vector<uint8_t>(longer, 0xee))), 1u);
  EXPECT_TRUE(
      std::ranges::equal(pair_.right.recv_bytes(longer), std::span(in_memory_).first(longer)));
}

// ---- Data in a slot ----

class DataInASlot : public testing::Test {
 protected:
  DataInASlot() {
    for (Endpoint* end : {&pair_.left, &pair_.right}) end->fill_send_buffer(pattern(4096, 1));
    pair_.left_bench.memory.in_slots[{pair_.left.client.id(), 4}] = data_;
    pair_.right.post_recv({.wr_id = 1, .sges = {pair_.right.recv_sge(4096)}});
  }
  SendWr message(uint32_t length, uint32_t slot = 5) const {
    SendWr wr{.wr_id = 7, .sges = {pair_.left.send_sge(length)}};
    wr.slot = slot;
    return wr;
  }
  WcStatus status() {
    pair_.run_until(10s);
    const auto cqes = pair_.take_left();
    EXPECT_EQ(cqes.size(), 1u);
    return cqes.empty() ? WcStatus::kGeneralErr : static_cast<WcStatus>(cqes[0].status);
  }
  uint64_t reads() const { return pair_.left_bench.memory.reads - reads_before_; }

  JoinedPair pair_;  // its MTU is 1024 bytes
  const std::vector<uint8_t> data_ = pattern(4096, 9);
  const uint64_t reads_before_ = pair_.left_bench.memory.reads;
};

TEST_F(DataInASlot, IsSentInPacketsOfTheMtu) {
  pair_.left.post_send(message(4000));
  EXPECT_EQ(status(), WcStatus::kSuccess);
  EXPECT_TRUE(std::ranges::equal(pair_.right.recv_bytes(4000), std::span(data_).first(4000)));
  EXPECT_EQ(reads(), 0u);
}

TEST_F(DataInASlot, IsSentAgainAfterALoss) {
  uint32_t requests = 0;
  pair_.copies = [&](std::span<const uint8_t> frame) {
    return frame.size() > 900 && ++requests == 3 ? 0 : 1;
  };
  pair_.left.post_send(message(4000));
  EXPECT_EQ(status(), WcStatus::kSuccess);
  EXPECT_GT(requests, 4u);
  EXPECT_TRUE(std::ranges::equal(pair_.right.recv_bytes(4000), std::span(data_).first(4000)));
  EXPECT_EQ(reads(), 0u);
}

TEST_F(DataInASlot, NeedsAValidKey) {
  SendWr wr = message(4000);
  wr.sges[0].lkey ^= 1;
  pair_.left.post_send(wr);
  EXPECT_EQ(status(), WcStatus::kLocProtErr);
}

TEST_F(DataInASlot, IsReadFromMemoryWhereThereIsNoSuchSlot) {
  pair_.left.post_send(message(4000, 77));
  EXPECT_EQ(status(), WcStatus::kSuccess);
  EXPECT_TRUE(std::ranges::equal(pair_.right.recv_bytes(4000), pattern(4000, 1)));
}

}  // namespace
}  // namespace rocemu::test
