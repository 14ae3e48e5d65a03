// Tests the payload of short messages, which is passed next to their completions: it is in the
// right place, and never missing.
#include "emulator/daemon/memory/received_payload.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "emulator/daemon/memory/process_memory.h"

namespace rocemu::daemon {
namespace {

using abi::PayloadSlot;
using engine::MemoryResult;
using engine::RemoteRange;
using Bytes = std::vector<uint8_t>;

/// Tests with a client that is this process, so that its memory can be checked.
class ReceivedPayloadTest : public testing::Test {
 protected:
  static constexpr engine::ClientId kClient{1};
  static constexpr engine::CqId kCq{7}, kOtherCq{8};
  static constexpr engine::QpNumber kQp{9}, kOtherQp{10};
  static constexpr size_t kSize = 8192;

  ReceivedPayloadTest() {
    buffer_.resize(kSize);
    EXPECT_EQ(memory_.add(kClient, getpid(), UniqueFd()), ProcessMemory::Way::kProcessVm);
    ring_->takes_payload = 1;
    memory_.share(kClient, *payload_, *ring_);
  }

  RemoteRange at(size_t offset, size_t length) const {
    return {reinterpret_cast<uint64_t>(buffer_.data()) + offset, length};
  }
  void receive(size_t offset, const Bytes& bytes, engine::QpNumber qp = kQp, bool is_first = true) {
    const RemoteRange to = at(offset, bytes.size());
    const std::array<std::span<const uint8_t>, 1> from{bytes};
    EXPECT_EQ(memory_.write_received(kClient, qp, is_first, {&to, 1}, from), MemoryResult::kDone);
  }
  uint8_t complete(uint32_t length, uint32_t index = 0, engine::QpNumber qp = kQp,
                   uint32_t status = 0, engine::CqId cq = kCq) {
    abi::Cqe cqe{};
    cqe.qp_num = qp.value;
    cqe.byte_len = length;
    cqe.status = status;
    cqe.queue = abi::WorkQueue::kRecv;
    memory_.flush();
    return memory_.attach_payload(kClient, cqe, cq, index);
  }
  Bytes now(size_t offset, size_t length) const {
    const auto begin = buffer_.begin() + static_cast<ptrdiff_t>(offset);
    return Bytes(begin, begin + static_cast<ptrdiff_t>(length));
  }
  Bytes read(size_t offset, size_t length) {
    Bytes bytes(length);
    const RemoteRange from = at(offset, length);
    const std::array<std::span<uint8_t>, 1> to{bytes};
    EXPECT_EQ(memory_.read(kClient, {&from, 1}, to), MemoryResult::kDone);
    return bytes;
  }
  PayloadSlot& slot(uint8_t payload) { return slots_->slots[payload - 1]; }

  std::unique_ptr<abi::Payload> payload_ = std::make_unique<abi::Payload>();
  abi::PayloadSlots* slots_ = &payload_->received;
  std::unique_ptr<abi::DoorbellRing> ring_ = std::make_unique<abi::DoorbellRing>();
  Bytes buffer_;
  ProcessMemory memory_;
};

TEST_F(ReceivedPayloadTest, IsInASlotAndNotInMemory) {
  receive(100, {1, 2, 3});
  const uint8_t payload = complete(3, 5);
  ASSERT_NE(payload, 0);
  EXPECT_EQ(slot(payload).state, abi::payload_state(kCq.value, 5, PayloadSlot::kFull));
  EXPECT_EQ(slot(payload).range_count, 1u);
  EXPECT_EQ(slot(payload).ranges[0].address, at(100, 3).address);
  EXPECT_EQ(slot(payload).ranges[0].length, 3u);
  EXPECT_EQ(slot(payload).bytes[2], 3);
  EXPECT_EQ(now(100, 3), Bytes({0, 0, 0}));
}

TEST_F(ReceivedPayloadTest, HasAllPartsOfADatagram) {
  receive(0, Bytes(40, 4));
  receive(40, {1, 2}, kQp, false);
  const uint8_t payload = complete(42);
  ASSERT_NE(payload, 0);
  EXPECT_EQ(slot(payload).range_count, 2u);
  EXPECT_EQ(slot(payload).bytes[41], 2);
}

TEST_F(ReceivedPayloadTest, IsWrittenIfItIsTooLong) {
  receive(0, Bytes(PayloadSlot::kMaxBytes + 1, 4));
  EXPECT_EQ(complete(PayloadSlot::kMaxBytes + 1), 0);
  EXPECT_EQ(now(PayloadSlot::kMaxBytes, 1), Bytes({4}));
}

TEST_F(ReceivedPayloadTest, MayBeAWholePacket) {
  receive(0, Bytes(40, 3));
  receive(40, Bytes(PayloadSlot::kMaxBytes - 40, 4), kQp, false);
  const uint8_t payload = complete(PayloadSlot::kMaxBytes);
  ASSERT_NE(payload, 0);
  EXPECT_EQ(slot(payload).bytes[39], 3);
  EXPECT_EQ(slot(payload).bytes[PayloadSlot::kMaxBytes - 1], 4);
}

// All messages get their slots before the first of them completes.
TEST_F(ReceivedPayloadTest, OfManyMessagesCanComeBeforeTheFirstCompletion) {
  for (uint8_t i = 0; i < 100; ++i) receive(size_t{i} * 64, Bytes(64, i));
  std::vector<uint8_t> payloads;
  for (uint8_t i = 0; i < 100; ++i) {
    const uint8_t payload = complete(64, i);
    if (payload == 0) {
      EXPECT_EQ(now(size_t{i} * 64, 64), Bytes(64, i)) << int{i};
      continue;
    }
    EXPECT_EQ(slot(payload).bytes[63], i);
    EXPECT_EQ(std::ranges::find(payloads, payload), payloads.end());
    payloads.push_back(payload);
  }
  EXPECT_GE(payloads.size(), 16u);
}

TEST_F(ReceivedPayloadTest, IsWrittenForAClientThatTakesNone) {
  ring_->takes_payload = 0;
  receive(0, {4});
  EXPECT_EQ(complete(1), 0);
  EXPECT_EQ(now(0, 1), Bytes({4}));
}

TEST_F(ReceivedPayloadTest, IsWrittenBeforeACompletionThatFails) {
  receive(0, {4});
  EXPECT_EQ(complete(1, 0, kQp, 5), 0);
  EXPECT_EQ(now(0, 1), Bytes({4}));
}

TEST_F(ReceivedPayloadTest, IsWrittenIfNoCompletionComes) {
  receive(0, {4});
  memory_.flush_unattached();
  EXPECT_EQ(now(0, 1), Bytes({4}));
}

TEST_F(ReceivedPayloadTest, BelongsToItsQp) {
  receive(0, {4}, kQp);
  receive(8, {5}, kOtherQp);
  const uint8_t other = complete(1, 0, kOtherQp), own = complete(1, 1, kQp);
  ASSERT_NE(other, 0);
  ASSERT_NE(own, 0);
  EXPECT_EQ(slot(other).bytes[0], 5);
  EXPECT_EQ(slot(own).bytes[0], 4);
}

// IBTA vol 1, 9.5: a READ after the message sees its data, even if the client has not polled the
// message.
TEST_F(ReceivedPayloadTest, IsSeenByReadsOfTheMemory) {
  receive(100, {1, 2, 3});
  EXPECT_EQ(read(101, 1), Bytes({2})) << "before its completion";
  receive(200, {4, 5, 6});
  const uint8_t payload = complete(3);
  ASSERT_NE(payload, 0);
  EXPECT_EQ(read(300, 1), Bytes({0}));
  EXPECT_NE(slot(payload).state & 3, PayloadSlot::kEmpty) << "the read was of other bytes";
  EXPECT_EQ(read(201, 4), Bytes({5, 6, 0, 0}));
  EXPECT_EQ(slot(payload).state & 3, PayloadSlot::kEmpty);
}

TEST_F(ReceivedPayloadTest, IsReplacedByLaterWrites) {
  receive(100, {1, 2, 3});
  ASSERT_NE(complete(3), 0);
  const Bytes later{9};
  const RemoteRange to = at(101, 1);
  const std::array<std::span<const uint8_t>, 1> from{later};
  EXPECT_EQ(memory_.write_soon(kClient, {&to, 1}, from), MemoryResult::kDone);
  memory_.flush();
  EXPECT_EQ(now(100, 3), Bytes({1, 9, 3}));
}

TEST_F(ReceivedPayloadTest, ReplacesEarlierWritesOfTheStep) {
  const Bytes earlier{8, 8, 8};
  const RemoteRange to = at(100, 3);
  const std::array<std::span<const uint8_t>, 1> from{earlier};
  EXPECT_EQ(memory_.write_soon(kClient, {&to, 1}, from), MemoryResult::kDone);
  receive(101, {1});
  EXPECT_EQ(read(100, 3), Bytes({8, 1, 8}));
  memory_.flush();
  EXPECT_EQ(now(100, 3), Bytes({8, 1, 8}));
}

TEST_F(ReceivedPayloadTest, IsWrittenWhenTheClientIsToHaveAllOfIt) {
  receive(100, {1});
  receive(200, {2});
  ASSERT_NE(complete(1), 0);
  ASSERT_NE(complete(1), 0);
  memory_.withdraw_payload(kClient);
  EXPECT_EQ(now(100, 1), Bytes({1}));
  EXPECT_EQ(now(200, 1), Bytes({2}));
}

TEST_F(ReceivedPayloadTest, IsWrittenAtTheSecondLookIfNoPollTakesIt) {
  receive(100, {1});
  ASSERT_NE(complete(1), 0);
  EXPECT_TRUE(memory_.is_any_untaken());
  memory_.write_untaken();
  EXPECT_EQ(now(100, 1), Bytes({0})) << "a poll may come";
  receive(200, {2});
  ASSERT_NE(complete(1), 0);
  memory_.write_untaken();
  EXPECT_EQ(now(100, 1), Bytes({1}));
  EXPECT_EQ(now(200, 1), Bytes({0}));
  memory_.write_untaken();
  EXPECT_EQ(now(200, 1), Bytes({2}));
  EXPECT_FALSE(memory_.is_any_untaken());
}

TEST_F(ReceivedPayloadTest, WaitsUntilTheClientHasCopiedTheEarlierOne) {
  receive(100, {1});
  const uint8_t copied = complete(1);
  ASSERT_NE(copied, 0);
  receive(100, {2});
  ASSERT_NE(complete(1, 1), 0);
  memory_.write_untaken();
  slot(copied).state = abi::payload_state(kCq.value, 0, PayloadSlot::kTaken);
  memory_.write_untaken();
  EXPECT_EQ(now(100, 1), Bytes({0})) << "what is copied now would lie on it";
  slot(copied).state = abi::payload_state(kCq.value, 0, PayloadSlot::kEmpty);
  memory_.write_untaken();
  EXPECT_EQ(now(100, 1), Bytes({2}));
}

// The slots are used in turn, beginning with the first. After the client has emptied a slot, the
// slot is used again.
TEST_F(ReceivedPayloadTest, TheLatestMessageIsWrittenLast) {
  for (uint32_t i = 0; i < 1000; ++i) {
    const auto value = static_cast<uint8_t>(i);
    receive(100, {value});
    const uint8_t payload = complete(1, i);
    // The client polls each message when 20 newer ones have arrived.
    for (uint32_t n = 0; payload != 0 && n < abi::PayloadSlots::kCount; ++n) {
      std::atomic<uint64_t>& state = slots_->slots[n].state;
      if (i >= 20 && state == abi::payload_state(kCq.value, i - 20, PayloadSlot::kFull)) {
        state = abi::payload_state(kCq.value, i - 20, PayloadSlot::kEmpty);
      }
    }
    if (i % 97 != 0) continue;
    memory_.write_untaken();
    memory_.write_untaken();
    ASSERT_EQ(now(100, 1), Bytes({value})) << i;
  }
}

TEST_F(ReceivedPayloadTest, OfAnotherCqIsWrittenAfterEarlierData) {
  receive(100, {1});
  ASSERT_NE(complete(1), 0);
  receive(100, {2}, kOtherQp);
  ASSERT_NE(complete(1, 0, kOtherQp, 0, kOtherCq), 0);
  EXPECT_EQ(now(100, 1), Bytes({1})) << "whoever polls the other CQ only has the later one";
}

TEST_F(ReceivedPayloadTest, NothingIsLostWithoutAFreeSlot) {
  for (uint32_t i = 0; i < 1000; ++i) {
    receive(i, {static_cast<uint8_t>(i)});
    complete(1, i);
  }
  memory_.withdraw_payload(kClient);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(now(i, 1), Bytes({static_cast<uint8_t>(i)})) << i;
}

TEST_F(ReceivedPayloadTest, AClientThatKeepsASlotGetsNoMore) {
  receive(100, {1});
  const uint8_t payload = complete(1);
  ASSERT_NE(payload, 0);
  slot(payload).state = abi::payload_state(kCq.value, 0, PayloadSlot::kTaken);
  EXPECT_EQ(read(100, 1), Bytes({0}));
  receive(200, {2});
  EXPECT_EQ(complete(1), 0);
  EXPECT_EQ(now(200, 1), Bytes({2}));
}

}  // namespace
}  // namespace rocemu::daemon
