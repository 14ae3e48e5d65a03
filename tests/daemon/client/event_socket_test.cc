// Tests completion channels and async fds: no event is lost while the client does not read, and the
// events of a destroyed object are removed.
#include "emulator/daemon/client/event_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <vector>

namespace rocemu::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr engine::Duration kNow{0};

class EventSocketTest : public testing::Test {
 protected:
  EventSocketTest() {
    EventSocket::Created created =
        EventSocket::create(loop, sizeof(abi::CompletionEventRecord), [this] { socket.reset(); });
    socket = std::move(created.socket);
    client = std::move(created.client_end);
    // A read must not block if a test fails.
    fcntl(client.get(), F_SETFL, O_NONBLOCK);
  }

  bool deliver(uint64_t handle) { return socket->deliver(abi::CompletionEventRecord{handle}); }
  std::vector<uint64_t> read_all() {
    std::vector<uint64_t> handles;
    uint64_t handle;
    while (read(client.get(), &handle, sizeof handle) == sizeof handle) {
      handles.push_back(handle);
      loop.wait(kNow);
    }
    return handles;
  }

  EventLoop loop;
  std::unique_ptr<EventSocket> socket;
  UniqueFd client;
};

TEST_F(EventSocketTest, OneReadIsOneEvent) {
  deliver(7);
  deliver(8);
  char buffer[64];
  EXPECT_EQ(read(client.get(), buffer, sizeof buffer), 8);
  EXPECT_EQ(read(client.get(), buffer, sizeof buffer), 8);
  EXPECT_EQ(read(client.get(), buffer, sizeof buffer), -1);
}

TEST_F(EventSocketTest, TheClientsEndBlocksUntilTheClientSaysOtherwise) {
  EventSocket::Created fresh = EventSocket::create(loop, 8, [] {});
  EXPECT_EQ(fcntl(fresh.client_end.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(EventSocketTest, AnAsyncEventIsSixteenBytes) {
  EventSocket::Created async = EventSocket::create(loop, sizeof(abi::AsyncEventRecord), [] {});
  async.socket->deliver(abi::AsyncEventRecord{0x1234, 9, 0});
  abi::AsyncEventRecord record{};
  ASSERT_EQ(read(async.client_end.get(), &record, sizeof record), 16);
  EXPECT_EQ(record.element, 0x1234u);
  EXPECT_EQ(record.event_type, 9u);
}

TEST_F(EventSocketTest, KeepsEventsThatTheSocketCannotHoldInOrder) {
  constexpr uint64_t kCount = 5000;
  for (uint64_t i = 0; i < kCount; ++i) ASSERT_TRUE(deliver(i));
  EXPECT_GT(socket->waiting(), 0u);
  const std::vector<uint64_t> handles = read_all();
  ASSERT_EQ(handles.size(), kCount);
  for (uint64_t i = 0; i < kCount; ++i) EXPECT_EQ(handles[i], i);
  EXPECT_EQ(socket->waiting(), 0u);
  EXPECT_EQ(loop.wait(kNow), 0) << "nothing to write, but epoll still says it could";
}

TEST_F(EventSocketTest, SaysWhenTooManyWait) {
  size_t delivered = 0;
  while (deliver(1)) ++delivered;
  EXPECT_EQ(socket->waiting(), EventSocket::kMaxWaiting);
  EXPECT_GE(delivered, EventSocket::kMaxWaiting);
}

TEST_F(EventSocketTest, ForgetsUnreadEventsOfOneObjectAndKeepsTheOthersInOrder) {
  for (const uint64_t handle : {1u, 2u, 1u, 3u, 1u, 2u}) deliver(handle);
  uint64_t first;
  ASSERT_EQ(read(client.get(), &first, sizeof first), 8);  // the client read one event of object 1
  EXPECT_EQ(socket->forget(1, client.get()), 1u);
  EXPECT_THAT(read_all(), ElementsAre(2, 3, 2));
  EXPECT_EQ(socket->forget(2, client.get()), 2u);
  EXPECT_EQ(socket->forget(3, client.get()), 1u);
}

TEST_F(EventSocketTest, ForgetsAcrossSocketAndOverflow) {
  constexpr uint64_t kRounds = 1000;
  for (uint64_t i = 0; i < kRounds; ++i) {
    deliver(1);
    deliver(100 + i);
  }
  ASSERT_GT(socket->waiting(), 0u);
  EXPECT_EQ(socket->forget(1, client.get()), 0u);
  const std::vector<uint64_t> handles = read_all();
  ASSERT_EQ(handles.size(), kRounds);
  for (uint64_t i = 0; i < kRounds; ++i) EXPECT_EQ(handles[i], 100 + i);
}

TEST_F(EventSocketTest, WithoutTheClientsEndEventsInTheSocketCountAsDelivered) {
  deliver(1);
  deliver(1);
  EXPECT_EQ(socket->forget(1, -1), 2u);
  EXPECT_THAT(read_all(), ElementsAre(1, 1));
}

TEST_F(EventSocketTest, CountsAnewAfterAnObjectWithTheSameHandle) {
  deliver(1);
  read_all();
  EXPECT_EQ(socket->forget(1, client.get()), 1u);
  EXPECT_EQ(socket->forget(1, client.get()), 0u);
  deliver(1);
  EXPECT_EQ(socket->forget(1, client.get()), 0u);
  EXPECT_THAT(read_all(), IsEmpty());
}

TEST_F(EventSocketTest, KnowsItsOwnClientEnd) {
  EventSocket::Created other = EventSocket::create(loop, 8, [] {});
  const UniqueFd copy(dup(client.get()));
  EXPECT_TRUE(socket->is_client_end(copy.get()));
  EXPECT_FALSE(socket->is_client_end(other.client_end.get()));
  EXPECT_FALSE(socket->is_client_end(-1));
}

TEST_F(EventSocketTest, GoesWhenTheClientClosesItsEnd) {
  deliver(1);
  client.reset();
  loop.wait(kNow);
  EXPECT_EQ(socket, nullptr);
  EXPECT_EQ(loop.wait(kNow), 0);
}

TEST_F(EventSocketTest, DeliveringBeforeTheHangupIsSeenIsHarmless) {
  client.reset();
  EXPECT_TRUE(deliver(1));
  EXPECT_TRUE(deliver(2));
}

}  // namespace
}  // namespace rocemu::daemon
