#include "verbs_provider/context/doorbell.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>

#include "tests/support/one_processor.h"

namespace rocemu::provider {
namespace {

using abi::DoorbellKind;
using abi::kDoorbellEntries;

class Doorbells : public testing::Test {
 protected:
  Doorbells() : wake_fd_(eventfd(0, EFD_NONBLOCK)) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, connection_), 0);
    writer_.attach(ring_.get(), wake_fd_, connection_[0]);
  }
  ~Doorbells() override {
    close(wake_fd_);
    close(connection_[0]);
    if (connection_[1] >= 0) close(connection_[1]);
  }

  void daemon_dies() {
    close(connection_[1]);
    connection_[1] = -1;
  }
  /// Returns how often the daemon was woken since the last call.
  uint64_t wake_ups() const {
    uint64_t count = 0;
    return read(wake_fd_, &count, sizeof(count)) == sizeof(count) ? count : 0;
  }

  std::unique_ptr<abi::DoorbellRing> ring_{new abi::DoorbellRing{}};
  int wake_fd_;
  int connection_[2];
  DoorbellWriter writer_;
};

TEST_F(Doorbells, AreWrittenInOrder) {
  EXPECT_EQ(writer_.ring(DoorbellKind::kSend, 17, 1), 0);
  EXPECT_EQ(writer_.ring(DoorbellKind::kCqArm, 3, abi::kCqArmSolicited | 9), 0);
  EXPECT_EQ(ring_->producer, 2u);
  EXPECT_EQ(ring_->entries[0].kind, DoorbellKind::kSend);
  EXPECT_EQ(ring_->entries[0].object, 17u);
  EXPECT_EQ(ring_->entries[1].object, 3u);
  EXPECT_EQ(ring_->entries[1].value, abi::kCqArmSolicited | 9);
}

TEST_F(Doorbells, WrapAroundTheRingAndTheCounter) {
  ring_->producer = 0xffffffff;
  ring_->consumer = 0xffffffff;
  EXPECT_EQ(writer_.ring(DoorbellKind::kSend, 1, 1), 0);
  EXPECT_EQ(writer_.ring(DoorbellKind::kSend, 2, 1), 0);
  EXPECT_EQ(ring_->producer, 1u);
  EXPECT_EQ(ring_->entries[kDoorbellEntries - 1].object, 1u);
  EXPECT_EQ(ring_->entries[0].object, 2u);
}

TEST_F(Doorbells, WakeOnlyADaemonThatSleeps) {
  writer_.ring(DoorbellKind::kSend, 1, 1);
  EXPECT_EQ(wake_ups(), 0u);
  ring_->daemon_sleeping = 1;
  writer_.ring(DoorbellKind::kSend, 1, 2);
  EXPECT_EQ(wake_ups(), 1u);
}

TEST_F(Doorbells, TellTheDaemonHowManyThreadsYield) {
  // with one processor, the other thread runs only while this one yields
  const test::OneProcessor here;
  EXPECT_EQ(ring_->giving_way, 0u);
  uint32_t seen = 0;
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (seen == 0) {
      seen = ring_->giving_way;
      sched_yield();
    }
    done = true;
  });
  while (!done) writer_.give_way();
  other.join();
  EXPECT_EQ(seen, 1u);
  EXPECT_EQ(ring_->giving_way, 0u);
}

TEST_F(Doorbells, TellTheDaemonWhereTheyWereRung) {
  const test::OneProcessor here;
  writer_.ring(DoorbellKind::kSend, 1, 1);
  EXPECT_EQ(ring_->client_processor, here.number() + 1);
}

TEST_F(Doorbells, WaitForSpaceInAFullRing) {
  ring_->producer = kDoorbellEntries;
  ring_->daemon_sleeping = 1;
  std::thread daemon([&] {
    while (wake_ups() == 0) sched_yield();
    ring_->consumer = 1;
  });
  EXPECT_EQ(writer_.ring(DoorbellKind::kSend, 5, 1), 0);
  daemon.join();
  EXPECT_EQ(ring_->entries[0].object, 5u);
}

TEST_F(Doorbells, FailOnceTheDaemonIsFoundGone) {
  ring_->producer = kDoorbellEntries;
  daemon_dies();
  EXPECT_EQ(writer_.ring(DoorbellKind::kSend, 5, 1), EIO);
  ring_->consumer = 1;
  EXPECT_EQ(writer_.ring(DoorbellKind::kSend, 5, 1), EIO);
  EXPECT_EQ(ring_->producer, kDoorbellEntries);
}

TEST_F(Doorbells, KnowWhetherTheDaemonIsThere) {
  EXPECT_FALSE(writer_.is_daemon_gone());
  daemon_dies();
  EXPECT_TRUE(writer_.is_daemon_gone());
}

TEST_F(Doorbells, OfSeveralThreadsAllArrive) {
  constexpr uint32_t kThreads = 4, kEach = 20000;
  std::thread threads[kThreads];
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads[t] = std::thread([this, t] {
      for (uint32_t i = 0; i < kEach; ++i) writer_.ring(DoorbellKind::kSend, t, i);
    });
  }
  uint32_t consumed = 0;
  uint64_t next[kThreads] = {};
  while (consumed < kThreads * kEach) {
    const uint32_t producer = ring_->producer.load(std::memory_order_acquire);
    for (; consumed != producer; ++consumed) {
      const abi::Doorbell bell = ring_->entries[consumed % kDoorbellEntries];
      ASSERT_LT(bell.object, kThreads);
      ASSERT_EQ(bell.value, next[bell.object]++);
    }
    ring_->consumer.store(consumed, std::memory_order_release);
    sched_yield();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rocemu::provider
