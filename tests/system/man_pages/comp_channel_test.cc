// Tests ibv_create_comp_channel(3), sentence by sentence.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class CompChannel : public ConnectedTest {
 protected:
  void cause_event() {
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    deliver_message(1);
  }
};

// "returns a pointer to the created completion event channel, or NULL if the request fails": after
// a failure, no file descriptor is left open.
TEST_F(CompChannel, CreationReturnsNullOnFailure) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next_fd = dup(0);
  ASSERT_GE(next_fd, 0);
  close(next_fd);
  rlimit none = limit;
  none.rlim_cur = static_cast<rlim_t>(next_fd);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  ibv_comp_channel* refused = ibv_create_comp_channel(context.get());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(refused, nullptr);
  // The context can still be used.
  EXPECT_NE(create_channel(), nullptr);
}

// "A completion channel is essentially file descriptor that is used to deliver completion
// notifications to a userspace process": this test is for poll(2).
TEST_F(CompChannel, ItsFdWorksWithPoll) {
  EXPECT_FALSE(event_pending(channel.get()));
  cause_event();
  EXPECT_TRUE(readable(channel->fd, 30'000));
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_FALSE(readable(channel->fd));
}

// Like any file descriptor, that of a channel works with epoll(7), level-triggered and
// edge-triggered.
TEST_F(CompChannel, ItsFdWorksWithEpoll) {
  for (const uint32_t mode : {uint32_t{0}, uint32_t{EPOLLET}}) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event interest{};
    interest.events = EPOLLIN | mode;
    ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &interest), 0);
    epoll_event ready{};
    settle();
    EXPECT_EQ(epoll_wait(epoll, &ready, 1, 0), 0);
    cause_event();
    EXPECT_EQ(epoll_wait(epoll, &ready, 1, 30'000), 1);
    EXPECT_EQ(take_event(channel.get()), cq.get());
    EXPECT_EQ(epoll_wait(epoll, &ready, 1, 0), 0);
    close(epoll);
  }
}

// Linux's ib_uverbs_event_read(): `if (eventsz > count) { ret = -EINVAL; event = NULL; }`. The
// event stays, and so does one for a buffer that is too large.
TEST_F(CompChannel, AReadIntoASmallBufferFailsAndKeepsTheEvent) {
  cause_event();
  ASSERT_TRUE(readable(channel->fd, 30'000));
  std::array<char, sizeof(uint64_t)> buffer{};
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4}, buffer.size() - 1}) {
    errno = 0;
    EXPECT_EQ(read(channel->fd, buffer.data(), size), -1) << size;
    EXPECT_EQ(errno, EINVAL) << size;
  }
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_FALSE(readable(channel->fd));
}

// The size of the buffer matters only if there is an event.
TEST_F(CompChannel, WithoutAnEventASmallBufferIsNoError) {
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
  settle();
  char byte = 0;
  errno = 0;
  EXPECT_EQ(read(channel->fd, &byte, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// ... O_NONBLOCK ...
TEST_F(CompChannel, ItsFdWorksWithONonblock) {
  const int flags = fcntl(channel->fd, F_GETFL);
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
  ibv_cq* event_cq = nullptr;
  void* cq_context = nullptr;
  settle();
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(channel.get(), &event_cq, &cq_context), -1);
  EXPECT_EQ(errno, EAGAIN);
  cause_event();
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// As on Linux, nothing can be written to a channel or to the file of async events, so neither ever
// reports POLLOUT, whatever arrives and is read.
TEST_F(CompChannel, ItsFdAndTheAsyncFdNeverReportPollout) {
  const auto writable = [](int fd) {
    pollfd entry{fd, POLLOUT, 0};
    return poll(&entry, 1, 0) != 0;
  };
  EXPECT_FALSE(writable(channel->fd));
  EXPECT_FALSE(writable(context->async_fd));
  constexpr int kMoreThanASocketHolds = 1000;
  for (int i = 0; i < kMoreThanASocketHolds; ++i) {
    ASSERT_NO_FATAL_FAILURE(cause_event());
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
  }
  EXPECT_FALSE(writable(channel->fd));
  for (int i = 0; i < kMoreThanASocketHolds; ++i) ASSERT_EQ(take_event(channel.get()), cq.get());
  EXPECT_FALSE(writable(channel->fd));
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event interest{};
  interest.events = EPOLLIN | EPOLLOUT | EPOLLET;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &interest), 0);
  ASSERT_NO_FATAL_FAILURE(cause_event());
  epoll_event ready{};
  EXPECT_EQ(epoll_wait(epoll, &ready, 1, 30'000), 1);
  EXPECT_EQ(ready.events, uint32_t{EPOLLIN});
  EXPECT_EQ(take_event(channel.get()), cq.get());
  close(epoll);
}

// The channel's descriptor works with read(2): each event is 8 bytes, the address of the CQ.
TEST_F(CompChannel, ItsFdWorksWithRead) {
  cause_event();
  uint64_t record = 0;
  ASSERT_EQ(read(channel->fd, &record, sizeof record), ssize_t{sizeof record});
  EXPECT_EQ(record, reinterpret_cast<uint64_t>(cq.get()));
  ibv_ack_cq_events(cq.get(), 1);
}

// "This may be useful to steer completion events to different threads by using multiple completion
// channels."
TEST_F(CompChannel, SeveralChannelsSteerEventsToDifferentThreads) {
  constexpr size_t kThreads = 4;
  constexpr uint64_t kRounds = 50;
  std::vector<std::thread> threads;
  std::array<uint64_t, kThreads> rounds{};
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ChannelPtr own = create_channel();
      CqPtr events = create_cq(64, own.get());
      CqPtr rest = create_cq();
      QpPtr a = create_qp(rest.get(), rest.get());
      QpPtr b = create_qp(events.get(), events.get());
      connect(a.get(), b.get());
      for (uint64_t i = 0; i < kRounds; ++i) {
        if (ibv_req_notify_cq(events.get(), 0) != 0) return;
        if (post_recv(b.get(), i, 1 + 2 * t) != 0 || post_send(a.get(), i) != 0) return;
        if (take_event(own.get()) != events.get()) return;
        if (poll_for(events.get(), 1).size() != 1 || poll_for(rest.get(), 1).size() != 1) return;
        ++rounds[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t done : rounds) EXPECT_EQ(done, kRounds);
}

// One channel can serve several CQs; each event names its CQ.
TEST_F(CompChannel, OneChannelServesSeveralCqs) {
  CqPtr second = create_cq(64, channel.get());
  QpPtr a = create_qp(other_cq.get(), other_cq.get());
  QpPtr b = create_qp(second.get(), second.get());
  ASSERT_NO_FATAL_FAILURE(connect(a.get(), b.get()));
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(second.get(), 0), 0);
  deliver_message(1);
  ASSERT_EQ(post_recv(b.get(), 2), 0);
  ASSERT_EQ(post_send(a.get(), 2), 0);
  EXPECT_EQ(take_event(channel.get()), cq.get());
  EXPECT_EQ(take_event(channel.get()), second.get());
}

// "ibv_destroy_comp_channel() fails if any CQs are still associated with the completion event
// channel being destroyed", and "returns ... the value of errno on failure".
TEST_F(CompChannel, DestructionFailsWhileACqIsAssociated) {
  EXPECT_EQ(ibv_destroy_comp_channel(channel.get()), EBUSY);
  cause_event();  // it still works
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// "returns 0 on success": the fixture's destructors check that for each test; this test creates and
// destroys many channels.
TEST_F(CompChannel, CanBeCreatedAndDestroyedManyTimes) {
  std::set<int> fds;
  for (int i = 0; i < 500; ++i) {
    ChannelPtr one = create_channel();
    ASSERT_NE(one, nullptr);
    fds.insert(one->fd);
  }
  EXPECT_EQ(fds.size(), 1u) << "a channel's descriptor was not closed";
}

}  // namespace
}  // namespace rocemu::system_test
