// Tests ibv_get_async_event(3) and ibv_ack_async_event(3), sentence by sentence.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class AsyncEvents : public VerbsTest {
 protected:
  /// Causes IBV_EVENT_CQ_ERR for `cq`, which has room for one completion.
  void overrun_small_cq() {
    cq = create_cq(1);
    qp = create_qp(cq.get(), cq.get());
    ASSERT_NO_FATAL_FAILURE(to_init(qp.get()));
    ASSERT_EQ(post_recv(qp.get(), 1), 0);
    ASSERT_EQ(post_recv(qp.get(), 2), 0);
    ASSERT_NO_FATAL_FAILURE(to_error(qp.get()));
  }

  CqPtr cq;
  QpPtr qp;
};

// "waits for the next async event of the RDMA device context and returns it through the pointer",
// "ibv_get_async_event() is a blocking function."
TEST_F(AsyncEvents, GetBlocksUntilAnEventComes) {
  std::atomic<bool> returned = false;
  ibv_async_event event{};
  std::thread waiter([&] {
    EXPECT_EQ(ibv_get_async_event(context.get(), &event), 0);  // "returns 0 on success"
    returned = true;
  });
  settle();
  EXPECT_FALSE(returned);
  overrun_small_cq();
  waiter.join();
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  // "One member of the element union will be valid, depending on the event_type."
  EXPECT_EQ(event.element.cq, cq.get());
  ibv_ack_async_event(&event);
}

// "... and -1 on error": with O_NONBLOCK and no event, the call fails.
TEST_F(AsyncEvents, GetReturnsMinusOneOnError) {
  const int flags = fcntl(context->async_fd, F_GETFL);
  ASSERT_EQ(fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
  ibv_async_event event{};
  settle();
  errno = 0;
  EXPECT_EQ(ibv_get_async_event(context.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// Linux's ib_uverbs_event_read(): `if (eventsz > count) { ret = -EINVAL; event = NULL; }`
TEST_F(AsyncEvents, AReadIntoASmallBufferFailsAndKeepsTheEvent) {
  overrun_small_cq();
  ASSERT_TRUE(readable(context->async_fd, 30'000));
  std::array<char, 16> buffer{};
  for (const size_t size : {size_t{4}, buffer.size() - 1}) {
    errno = 0;
    EXPECT_EQ(read(context->async_fd, buffer.data(), size), -1) << size;
    EXPECT_EQ(errno, EINVAL) << size;
  }
  EXPECT_EQ(take_async_event().event_type, IBV_EVENT_CQ_ERR);
}

// "destroying an object (CQ, SRQ or QP) will wait for all affiliated events for the object to be
// acknowledged"
TEST_F(AsyncEvents, DestroyingAnObjectWaitsForAcknowledgement) {
  ASSERT_NO_FATAL_FAILURE(overrun_small_cq());
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context.get(), &event), 0);
  qp.reset();
  std::atomic<bool> destroyed = false;
  std::thread destroyer([&] {
    cq.reset();
    destroyed = true;
  });
  for (int i = 0; i < 100; ++i) settle();
  EXPECT_FALSE(destroyed);
  ibv_ack_async_event(&event);
  destroyer.join();
  EXPECT_TRUE(destroyed);
}

// "this avoids an application retrieving an affiliated event after the corresponding object has
// already been destroyed": an unread event is removed with its object.
TEST_F(AsyncEvents, AnUnreadEventGoesWithItsObject) {
  ASSERT_NO_FATAL_FAILURE(overrun_small_cq());
  settle();
  EXPECT_TRUE(readable(context->async_fd));
  qp.reset();
  cq.reset();
  settle();
  EXPECT_FALSE(readable(context->async_fd));
}

// "If multiple threads call this function simultaneously, then when an async event occurs, only one
// thread will receive it."
TEST_F(AsyncEvents, OnlyOneOfSeveralThreadsReceivesAnEvent) {
  constexpr int kThreads = 4;
  std::vector<CqPtr> cqs;
  std::vector<QpPtr> qps;
  std::atomic<int> received = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ibv_async_event event{};
      if (ibv_get_async_event(context.get(), &event) != 0) return;
      ++received;
      ibv_ack_async_event(&event);
    });
  }
  for (int i = 0; i < kThreads; ++i) {
    ASSERT_NO_FATAL_FAILURE(overrun_small_cq());
    cqs.push_back(std::move(cq));
    qps.push_back(std::move(qp));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(received, kThreads);
  EXPECT_FALSE(readable(context->async_fd));
  qps.clear();
}

// "IBV_EVENT_COMM_EST: communication was established on a QP": the first message for a QP in RTR
// causes it.
TEST_F(AsyncEvents, AMessageOnAQpInRtrRaisesCommEst) {
  CqPtr both = create_cq();
  QpPtr active = create_qp(both.get(), both.get());
  QpPtr passive = create_qp(both.get(), both.get());
  for (ibv_qp* one : {active.get(), passive.get()}) ASSERT_NO_FATAL_FAILURE(to_init(one));
  ASSERT_NO_FATAL_FAILURE(to_rtr(active.get(), passive->qp_num));
  ASSERT_NO_FATAL_FAILURE(to_rtr(passive.get(), active->qp_num));
  ASSERT_NO_FATAL_FAILURE(to_rts(active.get()));
  ASSERT_EQ(post_recv(passive.get(), 1), 0);
  ASSERT_EQ(post_send(active.get(), 2), 0);
  const ibv_async_event event = take_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_COMM_EST);
  EXPECT_EQ(event.element.qp, passive.get());
  EXPECT_EQ(poll_for(both.get(), 2).size(), 2u);
}

// "IBV_EVENT_SQ_DRAINED: send queue was drained of outstanding messages in progress."
TEST_F(AsyncEvents, AQpThatCameToRestInSqdRaisesSqDrained) {
  CqPtr both = create_cq();
  QpPtr a = create_qp(both.get(), both.get());
  QpPtr b = create_qp(both.get(), both.get());
  ASSERT_NO_FATAL_FAILURE(connect(a.get(), b.get()));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = 1;
  ASSERT_EQ(ibv_modify_qp(a.get(), &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  const ibv_async_event event = take_async_event();
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  EXPECT_EQ(event.element.qp, a.get());
}

// A context gets the events of its own objects only.
TEST_F(AsyncEvents, BelongToTheContextOfTheirObject) {
  ContextPtr stranger = open_device();
  ASSERT_NE(stranger, nullptr);
  ASSERT_NO_FATAL_FAILURE(overrun_small_cq());
  EXPECT_EQ(take_async_event().event_type, IBV_EVENT_CQ_ERR);
  settle();
  EXPECT_FALSE(readable(stranger->async_fd));
}

}  // namespace
}  // namespace rocemu::system_test
