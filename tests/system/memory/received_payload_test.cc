// Tests short messages, whose payload is copied to the receive buffer by a poll. Whatever a program
// or its peer does between the message and the poll, both see the memory as if a NIC had written
// it.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/page_size.h"
#include "tests/system/memory/buffer_fixture.h"

namespace rocemu::system_test {
namespace {

const size_t kBytes = 4 * kPageSize;

class ReceivedPayloadProgram : public BufferTest {
 protected:
  ReceivedPayloadProgram() : BufferTest(kBytes, 64) {}

  /// Delivers a message of `length` bytes, all of which are `value`. Does not poll its completion.
  void deliver(size_t offset, uint32_t length, uint8_t value) {
    ASSERT_EQ(post_receive(receiver.get(), value, {part(offset, length)}), 0);
    std::memset(slot(0), value, length);
    ASSERT_EQ(post_send(sender.get(), 1, IBV_SEND_SIGNALED, length), 0);
    ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
  }
  void receive() {
    const auto completions = poll_for(receive_cq.get(), 1);
    ASSERT_EQ(completions.size(), 1u);
    ASSERT_EQ(completions[0].status, IBV_WC_SUCCESS);
  }
  void remote(ibv_wr_opcode opcode, size_t offset, uint32_t length) {
    ibv_send_wr wr = request(opcode, 1);
    entry = sge(2, length);
    wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(buffer + offset), .rkey = region->rkey};
    ASSERT_EQ(post(sender.get(), wr), 0);
    ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
  }
  bool is(size_t offset, size_t length, uint8_t value) const {
    return std::all_of(buffer + offset, buffer + offset + length,
                       [value](uint8_t byte) { return byte == value; });
  }
};

// IBTA vol 1, 9.5: a READ after a SEND on the same QP sees the SEND's data.
TEST_F(ReceivedPayloadProgram, ThePeerMayReadItBeforeThePoll) {
  ASSERT_NO_FATAL_FAILURE(deliver(100, 64, 7));
  ASSERT_NO_FATAL_FAILURE(remote(IBV_WR_RDMA_READ, 100, 64));
  EXPECT_EQ(slot(2)[0], 7);
  EXPECT_EQ(slot(2)[63], 7);
  ASSERT_NO_FATAL_FAILURE(receive());
  EXPECT_TRUE(is(100, 64, 7));
}

TEST_F(ReceivedPayloadProgram, ThePeerMayWriteOverItBeforeThePoll) {
  ASSERT_NO_FATAL_FAILURE(deliver(100, 64, 7));
  std::memset(slot(2), 9, 16);
  ASSERT_NO_FATAL_FAILURE(remote(IBV_WR_RDMA_WRITE, 110, 16));
  ASSERT_NO_FATAL_FAILURE(receive());
  EXPECT_TRUE(is(100, 10, 7));
  EXPECT_TRUE(is(110, 16, 9));
  EXPECT_TRUE(is(126, 38, 7));
}

// As on hardware, a program may read the memory instead of polling.
TEST_F(ReceivedPayloadProgram, IsSeenWithoutAPoll) {
  const auto sees = [this](size_t offset, uint8_t value) {
    const volatile uint8_t* last = buffer + offset;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (*last != value && std::chrono::steady_clock::now() < end) {
    }
    return *last == value;
  };
  for (uint8_t i = 1; i <= 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(deliver(size_t{i} * 64, 64, i));
    ASSERT_TRUE(sees(size_t{i} * 64 + 63, i)) << int{i};
  }
  std::memset(buffer, 9, kBytes);  // the program now uses the buffer for something else
  ASSERT_EQ(poll_for(receive_cq.get(), 20).size(), 20u);
  EXPECT_TRUE(is(0, kBytes, 9));
}

TEST_F(ReceivedPayloadProgram, IsThereWhenTheMemoryWasDeregistered) {
  ASSERT_NO_FATAL_FAILURE(deliver(100, 64, 7));
  region.reset();
  EXPECT_TRUE(is(100, 64, 7));
  std::memset(buffer, 1, kBytes);  // the program now uses the buffer for something else
  ASSERT_NO_FATAL_FAILURE(receive());
  EXPECT_TRUE(is(0, kBytes, 1));
}

TEST_F(ReceivedPayloadProgram, GoesNowhereIfTheBufferWasUnmapped) {
  ASSERT_NO_FATAL_FAILURE(deliver(kPageSize - 8, 64, 7));
  munmap(buffer, kPageSize);
  ASSERT_NO_FATAL_FAILURE(receive());
  EXPECT_TRUE(is(kPageSize, 56, 7)) << "the other page is still there";
  ASSERT_NO_FATAL_FAILURE(deliver(8, 4, 7));
  ASSERT_NO_FATAL_FAILURE(receive());
}

TEST_F(ReceivedPayloadProgram, ReachesABufferThatBecameReadOnly) {
  for (const uint32_t length : {4u, 64u}) {
    ASSERT_NO_FATAL_FAILURE(deliver(length, length, 7));
    ASSERT_EQ(mprotect(buffer, kPageSize, PROT_READ), 0);
    ASSERT_NO_FATAL_FAILURE(receive());
    EXPECT_TRUE(is(length, length, 7));
    ASSERT_EQ(mprotect(buffer, kPageSize, PROT_READ | PROT_WRITE), 0);
  }
}

// One call of ibv_poll_cq polls all messages, and checks for each page whether it still exists.
TEST_F(ReceivedPayloadProgram, OfSeveralPagesInOnePoll) {
  const std::array<size_t, 6> offsets = {0,
                                         // in a page that is unmapped before the poll
                                         kPageSize + 8,
                                         100,                // in the first page again
                                         2 * kPageSize - 4,  // its end is in the third page
                                         2 * kPageSize + 64, 3 * kPageSize - 32};
  for (size_t i = 0; i < offsets.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(deliver(offsets[i], 64, static_cast<uint8_t>(i + 1)));
  }
  munmap(buffer + kPageSize, kPageSize);
  ASSERT_EQ(mprotect(buffer + 3 * kPageSize, kPageSize, PROT_READ), 0);
  std::array<ibv_wc, 6> completions;
  ASSERT_EQ(ibv_poll_cq(receive_cq.get(), 6, completions.data()), 6);
  EXPECT_TRUE(is(0, 64, 1));
  EXPECT_TRUE(is(100, 64, 3));
  EXPECT_TRUE(is(2 * kPageSize, 60, 4));
  EXPECT_TRUE(is(2 * kPageSize + 64, 64, 5));
  EXPECT_TRUE(is(3 * kPageSize - 32, 64, 6));
}

TEST_F(ReceivedPayloadProgram, OfEachLengthAndAcrossPages) {
  for (uint32_t length = 1; length <= 200; ++length) {
    for (const size_t offset : {size_t{64}, kPageSize - length / 2, kPageSize - length}) {
      std::memset(buffer, 0, 2 * kPageSize);
      ASSERT_NO_FATAL_FAILURE(deliver(offset, length, 7));
      ASSERT_NO_FATAL_FAILURE(receive());
      ASSERT_TRUE(is(0, offset, 0) && is(offset, length, 7) && is(offset + length, 64, 0))
          << length << " bytes at " << offset;
    }
  }
}

TEST_F(ReceivedPayloadProgram, MovesWithItsCq) {
  for (uint8_t i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(deliver(size_t{i} * 64, 64, static_cast<uint8_t>(i + 1)));
  }
  ASSERT_EQ(ibv_resize_cq(receive_cq.get(), 200), 0);
  for (uint8_t i = 0; i < 20; ++i) {
    ASSERT_NO_FATAL_FAILURE(receive());
    EXPECT_TRUE(is(size_t{i} * 64, 64, static_cast<uint8_t>(i + 1))) << int{i};
  }
}

TEST_F(ReceivedPayloadProgram, IsTheParentsAfterAFork) {
  ASSERT_NO_FATAL_FAILURE(deliver(0, 64, 7));
  const pid_t child = fork();
  if (child == 0) {
    const uint8_t before = buffer[0];
    ibv_wc wc;
    _exit(ibv_poll_cq(receive_cq.get(), 1, &wc) < 0 && is(0, 64, before) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_NO_FATAL_FAILURE(receive());
  EXPECT_TRUE(is(0, 64, 7));
}

// A context has 256 slots for copies of messages to send. If a QP is destroyed, its slots must
// become free: only then are later messages still copied when they are posted.
TEST_F(ReceivedPayloadProgram, OfMessagesAfterManyQpsThatWereDestroyed) {
  for (int i = 0; i < 30; ++i) {
    const QpPtr one = make_qp({}), peer = make_qp({});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(one.get(), peer.get()));
    for (int n = 0; n < 10; ++n) ASSERT_EQ(post_send(one.get(), 1, IBV_SEND_SIGNALED, 1000), 0);
  }
  // This message waits for a receive, which is posted after the program changed the buffer.
  std::memset(slot(0), 7, 1000);
  ASSERT_EQ(post_send(sender.get(), 1, IBV_SEND_SIGNALED, 1000), 0);
  std::memset(slot(0), 9, 1000);
  ASSERT_EQ(post_receive(receiver.get(), 0, {part(0, 1000)}), 0);
  ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(receive());
  EXPECT_TRUE(is(0, 1000, 7));
}

// More messages arrive than there are slots, and none is polled before the last one has arrived.
TEST_F(ReceivedPayloadProgram, OfManyCqsThatAreNotPolled) {
  constexpr size_t kQueues = 12, kEach = 30;
  std::vector<CqPtr> cqs;
  std::vector<QpPtr> receivers, senders;
  for (size_t q = 0; q < kQueues; ++q) {
    cqs.push_back(create_cq());
    receivers.push_back(make_qp({.cq = cqs.back().get()}));
    senders.push_back(make_qp({}));
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(senders.back().get(), receivers.back().get()));
    receiver.swap(receivers.back());
    sender.swap(senders.back());
    for (size_t i = 0; i < kEach; ++i) {
      const auto value = static_cast<uint8_t>(q * kEach + i);
      ASSERT_NO_FATAL_FAILURE(deliver((q * kEach + i) * 32, 32, value));
    }
    receiver.swap(receivers.back());
    sender.swap(senders.back());
  }
  for (size_t q = kQueues; q-- > 0;) ASSERT_EQ(poll_for(cqs[q].get(), kEach).size(), kEach);
  for (size_t i = 0; i < kQueues * kEach; ++i) {
    ASSERT_TRUE(is(i * 32, 32, static_cast<uint8_t>(i))) << i;
  }
  receivers.clear();
  senders.clear();
}

// Each registration makes the NIC write the payload of messages that were not polled yet.
TEST_F(ReceivedPayloadProgram, WhileAnotherThreadRegisters) {
  std::atomic<bool> done{false};
  std::thread registering([&] {
    std::vector<uint8_t> other(kPageSize);
    while (!done) MrPtr(ibv_reg_mr(pd.get(), other.data(), kPageSize, IBV_ACCESS_LOCAL_WRITE));
  });
  for (int round = 0; round < 3000; ++round) {
    const auto value = static_cast<uint8_t>(round);
    const size_t offset = static_cast<size_t>(round % 200) * 64;
    ASSERT_NO_FATAL_FAILURE(deliver(offset, 64, value));
    ASSERT_NO_FATAL_FAILURE(receive());
    ASSERT_TRUE(is(offset, 64, value)) << round;
  }
  done = true;
  registering.join();
}

}  // namespace
}  // namespace rocemu::system_test
