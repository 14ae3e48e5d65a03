// Tests the queues that a client and the daemon share: their sizes, and which threads are notified
// of completions.
#include "emulator/daemon/client/client_queues.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <utility>

namespace rocemu::daemon {
namespace {

TEST(QpMemoryPlan, KeepsQueuesApartAndLetsAQpWithoutAnyBeMapped) {
  const QpMemoryPlan none = plan_qp_memory({});
  EXPECT_EQ(none.send.slots, 0u);
  EXPECT_EQ(none.recv.slots, 0u);
  EXPECT_GT(none.size, 0u);

  const QpMemoryPlan both = plan_qp_memory({.max_send_wr = 100,
                                            .max_recv_wr = 1,
                                            .max_send_sge = 4,
                                            .max_recv_sge = 3,
                                            .max_inline_data = 200});
  EXPECT_EQ(both.send.slots, 128u);
  EXPECT_EQ(both.send.stride, 320u);
  EXPECT_EQ(both.recv.slots, 1u);
  EXPECT_EQ(both.recv.stride, 64u);
  EXPECT_EQ(both.recv.offset, 128u * 320u);
  EXPECT_GE(both.size, both.recv.offset + 64u);
}

TEST(QpMemoryPlan, HasNoRingsForQueuesThatAQpDoesNotHave) {
  const abi::QpCap cap{.max_send_wr = 4,
                       .max_recv_wr = 8,
                       .max_send_sge = 1,
                       .max_recv_sge = 1,
                       .max_inline_data = 0};
  const auto slots = [&](abi::QpType type, bool has_srq) {
    const QpMemoryPlan plan = plan_qp_memory(without_missing_queues(cap, type, has_srq));
    return std::pair(plan.send.slots, plan.recv.slots);
  };
  EXPECT_EQ(slots(abi::QpType::kRc, false), std::pair(4u, 8u));
  EXPECT_EQ(slots(abi::QpType::kRc, true), std::pair(4u, 0u));
  EXPECT_EQ(slots(abi::QpType::kXrcSend, false), std::pair(4u, 0u));
  EXPECT_EQ(slots(abi::QpType::kXrcRecv, false), std::pair(0u, 0u));
}

class CqMoveTest : public testing::Test {
 protected:
  Arena::Piece memory(uint32_t capacity) {
    return std::move(*arena.take(cq_memory_size(capacity)));
  }
  /// Returns the CQ's memory in the client's view.
  static abi::CqRing& ring(const Arena::Piece& memory) {
    return *reinterpret_cast<abi::CqRing*>(memory.data());
  }
  void add(uint32_t count) {
    abi::Cqe cqe{};
    for (uint32_t i = 0; i < count; ++i) {
      cqe.wr_id = next_wr_id++;
      cq->add(cqe);
    }
    must_be_watched = cq->publish();
  }
  void make(uint32_t capacity) {
    Arena::Piece first = memory(capacity);
    first_ring = &ring(first);
    cq.emplace(std::move(first), capacity, 0, engine::ChannelId{});
  }
  abi::CqRing& move(uint32_t capacity) {
    Arena::Piece next = memory(capacity);
    abi::CqRing& next_ring = ring(next);
    EXPECT_TRUE(cq->move_to(std::move(next), capacity));
    return next_ring;
  }

  Arena arena;
  std::optional<CompletionQueue> cq;
  abi::CqRing* first_ring = nullptr;
  uint64_t next_wr_id = 0;
  bool must_be_watched = false;
};

TEST_F(CqMoveTest, TakesTheUnreadCompletionsAlongAndCountsOn) {
  make(4);
  add(4);
  first_ring->consumer.store(3);
  add(2);  // completions 3, 4 and 5 wait
  abi::CqRing& larger = move(16);
  EXPECT_EQ(larger.producer.load(), 6u);
  EXPECT_EQ(larger.consumer.load(), 3u);
  for (uint32_t n = 3; n < 6; ++n) EXPECT_EQ(larger.entries[n % 16].wr_id, n);
  add(1);
  EXPECT_EQ(larger.entries[6].wr_id, 6u);
  EXPECT_EQ(larger.producer.load(), 7u);
  larger.consumer.store(5);
  abi::CqRing& smaller = move(2);
  EXPECT_EQ(smaller.consumer.load(), 5u);
  EXPECT_EQ(smaller.entries[5 % 2].wr_id, 5u);
  EXPECT_EQ(smaller.entries[6 % 2].wr_id, 6u);
  EXPECT_EQ(smaller.error.load(), 0u);
}

// The new memory may have belonged to another CQ, whose completions it still contains.
TEST_F(CqMoveTest, BeginsEmptyWhateverIsInItsMemory) {
  for (const bool moves : {false, true}) {
    if (moves) make(1);
    Arena::Piece dirty = memory(4);
    std::memset(dirty.data(), 0xa5, dirty.size());
    abi::CqRing& fresh = ring(dirty);
    if (moves) {
      EXPECT_TRUE(cq->move_to(std::move(dirty), 4));
    } else {
      cq.emplace(std::move(dirty), 4, 0, engine::ChannelId{});
    }
    for (const auto* word : {&fresh.producer, &fresh.consumer, &fresh.error, &fresh.waiting}) {
      EXPECT_EQ(word->load(), 0u);
    }
  }
}

TEST_F(CqMoveTest, StaysOverrun) {
  make(4);
  cq->set_error();
  first_ring->error.store(0);  // the client's word
  EXPECT_EQ(move(8).error.load(), 1u);
}

TEST_F(CqMoveTest, RefusesAConsumerIndexThatCannotBe) {
  make(4);
  add(4);
  for (const uint32_t consumer : {5u, 0x8000'0000u, 0xffff'ffffu}) {
    first_ring->consumer.store(consumer);
    EXPECT_FALSE(cq->move_to(memory(1u << 20), 1u << 20)) << consumer;
  }
  first_ring->consumer.store(1);  // 3 completions wait, although the engine got a smaller number
  EXPECT_FALSE(cq->move_to(memory(2), 2));
  EXPECT_EQ(cq->capacity(), 4u);
}

class CqWaitTest : public CqMoveTest {
 protected:
  CqWaitTest() { make(64); }
  void wait_for(uint32_t completions) {
    first_ring->wake_at = first_ring->producer + completions;
    first_ring->waiting = 1;
  }
  bool waits() const { return first_ring->waiting != 0; }
};

TEST_F(CqWaitTest, IsWokenAtTheNumberThatItWaitsFor) {
  wait_for(3);
  add(2);
  EXPECT_TRUE(waits());
  add(1);
  EXPECT_FALSE(waits());
  wait_for(1);
  add(5);
  EXPECT_FALSE(waits());
}

TEST_F(CqWaitTest, IsWokenWhenNoMoreCome) {
  wait_for(30);
  add(1);
  EXPECT_TRUE(must_be_watched);
  EXPECT_NE(first_ring->watched, 0u);
  add(1);
  EXPECT_FALSE(must_be_watched) << "it is already";
  EXPECT_TRUE(waits());
  cq->unwatch();
  EXPECT_FALSE(waits());
  EXPECT_EQ(first_ring->watched, 0u);
  wait_for(30);
  add(1);
  EXPECT_TRUE(must_be_watched) << "another time";
}

TEST_F(CqWaitTest, IsWokenAlsoIfItWaitsAfterTheLatestCompletion) {
  add(1);
  EXPECT_TRUE(must_be_watched);
  wait_for(30);
  cq->unwatch();
  EXPECT_FALSE(waits());
}

TEST_F(CqWaitTest, IsWatchedInItsNewMemory) {
  add(1);
  abi::CqRing& larger = move(128);
  EXPECT_NE(larger.watched, 0u);
  cq->unwatch();
  EXPECT_EQ(larger.watched, 0u);
  EXPECT_EQ(move(64).watched, 0u);
}

TEST_F(CqWaitTest, NotesWhetherCompletionsCame) {
  EXPECT_FALSE(cq->has_progressed());
  add(2);
  EXPECT_TRUE(cq->has_progressed());
  EXPECT_FALSE(cq->has_progressed());
}

// The number of completions wraps after 2^32, and the client may write any value.
TEST_F(CqWaitTest, CountsModulo2To32) {
  first_ring->wake_at = 0xffff'fff0;
  first_ring->waiting = 1;
  add(1);
  EXPECT_FALSE(waits()) << "that was long ago";
  wait_for(0x8000'0001);
  add(1);
  EXPECT_TRUE(waits());
}

TEST(CqMemory, IsSparseHoweverLarge) {
  Arena arena;
  std::optional<Arena::Piece> memory = arena.take(cq_memory_size(1u << 22));
  ASSERT_TRUE(memory);
  const int file = arena.file_of(memory->range().segment)->fd;
  CompletionQueue cq(std::move(*memory), 1u << 22, 0, {});
  cq.add({});
  EXPECT_TRUE(cq.publish());
  struct stat status {};
  ASSERT_EQ(fstat(file, &status), 0);
  EXPECT_GT(status.st_size, 256 << 20);
  EXPECT_LT(status.st_blocks * 512, 4 << 20);
}

// ---- ObjectMap --------------------------------------------------------------------------------

TEST(ObjectMap, FindsItsEntriesAfterAnyInsertionsAndRemovals) {
  std::minstd_rand random(5);
  ObjectMap<uint64_t> map;
  std::map<uint32_t, uint64_t> expected;
  for (uint64_t i = 0; i < 50'000; ++i) {
    // The numbers are either close to each other or arbitrary.
    const auto number = static_cast<uint32_t>(random() % 2 == 0 ? random() % 500 : random() << 8);
    if (map.find(number) != nullptr && random() % 2 == 0) {
      map.erase(number);
      expected.erase(number);
    } else {
      EXPECT_EQ(map.insert(number, i), i);
      expected[number] = i;
    }
    const uint64_t* found = map.find(number ^ 1);
    ASSERT_EQ(found != nullptr, expected.contains(number ^ 1));
    if (found != nullptr) {
      ASSERT_EQ(*found, expected[number ^ 1]);
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  map.shrink();
  for (const auto& [number, value] : expected) ASSERT_EQ(*map.find(number), value);
}

TEST(ObjectMap, CanBeEmptiedInSeveralSteps) {
  ObjectMap<int> map;
  EXPECT_EQ(map.erase_some(), 0u);
  for (uint32_t i = 0; i < 1000; ++i) map.insert(7 * i, 0);
  size_t left = map.size();
  while (!map.empty()) {
    const uint32_t erased = map.erase_some();
    ASSERT_GT(erased, 0u);
    ASSERT_LE(erased, 16u);
    left -= erased;
    ASSERT_EQ(map.size(), left);
  }
  EXPECT_EQ(map.find(7), nullptr);
}

}  // namespace
}  // namespace rocemu::daemon
