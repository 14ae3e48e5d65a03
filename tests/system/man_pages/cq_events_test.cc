// Tests ibv_get_cq_event(3) and ibv_ack_cq_events(3), sentence by sentence.
#include <atomic>
#include <thread>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class CqEvents : public ConnectedTest {
 protected:
  void cause_event(uint64_t wr_id = 1) {
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    deliver_message(wr_id);
  }

  /// Destroys the CQ in a thread, after the QP that uses it, and then sets `destroyed`.
  void destroy_cq_in(std::thread& thread, std::atomic<bool>& destroyed) {
    receiver.reset();
    thread = std::thread([this, &destroyed] {
      cq.reset();
      destroyed = true;
    });
  }
};

// "ibv_get_cq_event() waits for the next completion event in the completion event channel."
TEST_F(CqEvents, GetWaitsForTheNextEvent) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  std::atomic<bool> returned = false;
  std::thread waiter([&] {
    ibv_cq* event_cq = nullptr;
    void* event_context = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel.get(), &event_cq, &event_context), 0);
    ibv_ack_cq_events(event_cq, 1);
    returned = true;
  });
  settle();
  EXPECT_FALSE(returned);
  deliver_message(1);
  waiter.join();
  EXPECT_TRUE(returned);
}

// "Fills the arguments cq with the CQ that got the event and cq_context with the CQ's context."
TEST_F(CqEvents, GetTellsTheCqAndItsContext) {
  cause_event();
  ibv_cq* event_cq = nullptr;
  void* event_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &event_cq, &event_context),
            0);  // "returns 0 on success"
  EXPECT_EQ(event_cq, cq.get());
  EXPECT_EQ(event_context, static_cast<void*>(this));
  ibv_ack_cq_events(event_cq, 1);
}

// "destroying a CQ will wait for all completion events to be acknowledged"
TEST_F(CqEvents, DestroyWaitsForAcknowledgement) {
  cause_event();
  ibv_cq* event_cq = nullptr;
  void* event_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel.get(), &event_cq, &event_context), 0);
  std::atomic<bool> destroyed = false;
  std::thread thread;
  destroy_cq_in(thread, destroyed);
  // waits far longer than a destruction that does not block
  for (int i = 0; i < 100; ++i) settle();
  EXPECT_FALSE(destroyed);
  ibv_ack_cq_events(event_cq, 1);
  thread.join();
  EXPECT_TRUE(destroyed);
}

// "acknowledges nevents events on the CQ": several in one call.
TEST_F(CqEvents, SeveralEventsAreAcknowledgedInOneCall) {
  for (uint64_t i = 0; i < 10; ++i) {
    cause_event(i);
    ibv_cq* event_cq = nullptr;
    void* event_context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel.get(), &event_cq, &event_context), 0);
  }
  ibv_ack_cq_events(cq.get(), 10);
  receiver.reset();
  cq.reset();  // does not wait
}

// "this guarantees a one-to-one correspondence between acks and successful gets": an event that was
// never read needs no acknowledgement, and is not delivered after its CQ was destroyed.
TEST_F(CqEvents, AnUnreadEventGoesWithItsCq) {
  cause_event();
  receiver.reset();
  cq.reset();  // does not block, although the unread event was never acknowledged
  EXPECT_FALSE(event_pending(channel.get()));
}

// After a CQ was destroyed, the channel still has the events of other CQs, in order.
TEST_F(CqEvents, DestroyingACqLeavesTheEventsOfOthers) {
  constexpr int kOthers = 5;
  std::vector<CqPtr> cqs;
  std::vector<QpPtr> qps;
  cause_event();
  for (int i = 0; i < kOthers; ++i) {
    cqs.push_back(create_cq(8, channel.get()));
    qps.push_back(create_qp(cqs.back().get(), cqs.back().get()));
    ASSERT_NO_FATAL_FAILURE(to_init(qps.back().get()));
    ASSERT_EQ(post_recv(qps.back().get(), 1), 0);
    ASSERT_EQ(ibv_req_notify_cq(cqs.back().get(), 0), 0);
    to_error(qps.back().get());
  }
  receiver.reset();
  cq.reset();
  qps[2].reset();
  cqs[2].reset();
  for (const int i : {0, 1, 3, 4}) {
    EXPECT_EQ(take_event(channel.get()), cqs[static_cast<size_t>(i)].get());
  }
  EXPECT_FALSE(event_pending(channel.get()));
  qps.clear();
}

// More events than a socket buffer holds are unread: none is lost.
TEST_F(CqEvents, ThousandsOfUnreadEventsAreKept) {
  constexpr uint64_t kEvents = 3000;
  for (uint64_t i = 0; i < kEvents; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
    ASSERT_EQ(post_recv(receiver.get(), i), 0);
    ASSERT_EQ(post_send(sender.get(), i), 0);
    ASSERT_EQ(poll_for(other_cq.get(), 1).size(), 1u);
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
  }
  for (uint64_t i = 0; i < kEvents; ++i) ASSERT_EQ(take_event(channel.get()), cq.get());
  EXPECT_FALSE(event_pending(channel.get()));
}

// The EXAMPLES section: two threads that arm, poll and wait in this order miss no wake-up.
TEST_F(CqEvents, TheManPagesExampleLosesNoWakeUp) {
  constexpr uint64_t kMessages = 5000;
  // "Request notification before any completion can be created": existing completions cause no
  // event.
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  std::thread consumer([&] {
    uint64_t received = 0;
    while (received < kMessages) {
      ASSERT_TRUE(readable(channel->fd, 30'000)) << "after " << received << " messages";
      ASSERT_EQ(take_event(channel.get()), cq.get());
      ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
      ibv_wc wc{};
      int n = 0;
      while ((n = ibv_poll_cq(cq.get(), 1, &wc)) > 0) {
        ASSERT_EQ(wc.wr_id, received);
        ++received;
        ASSERT_EQ(post_recv(receiver.get(), received + kQueueDepth - 1), 0);
      }
      ASSERT_EQ(n, 0);
    }
  });
  for (uint64_t i = 0; i < kQueueDepth; ++i) ASSERT_EQ(post_recv(receiver.get(), i), 0);
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(post_send(sender.get(), i), 0);
    ASSERT_EQ(poll_for(other_cq.get(), 1).size(), 1u);
  }
  consumer.join();
}

}  // namespace
}  // namespace rocemu::system_test
