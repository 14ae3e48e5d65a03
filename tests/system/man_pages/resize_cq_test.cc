// Tests ibv_resize_cq(3) and ibv_modify_cq(3), sentence by sentence.
#include <atomic>
#include <thread>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class ResizeCq : public ConnectedTest {
 protected:
  /// Polls all completions of the CQ, and returns their wr_ids in order.
  std::vector<uint64_t> poll_all() {
    std::vector<uint64_t> found;
    ibv_wc wc{};
    while (ibv_poll_cq(cq.get(), 1, &wc) == 1) found.push_back(wc.wr_id);
    return found;
  }
};

// "resizes the completion queue (CQ) cq to have at least cqe entries"; "The cqe member of cq will
// be updated to the actual size."
TEST_F(ResizeCq, MakesTheCqAtLeastThatLarge) {
  ASSERT_EQ(ibv_resize_cq(cq.get(), 1000), 0);
  EXPECT_GE(cq->cqe, 1000);
  ASSERT_EQ(ibv_resize_cq(cq.get(), 5), 0);
  EXPECT_GE(cq->cqe, 5);
  ASSERT_NO_FATAL_FAILURE(deliver_message(1));
  EXPECT_EQ(poll_all(), std::vector<uint64_t>{1});
}

TEST_F(ResizeCq, KeepsTheCompletionsThatWereNotPolled) {
  for (uint64_t i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(deliver_message(i));
  ibv_wc wc{};
  ASSERT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 1);
  ASSERT_EQ(ibv_resize_cq(cq.get(), 300), 0);
  for (uint64_t i = 5; i < 8; ++i) ASSERT_NO_FATAL_FAILURE(deliver_message(i));
  EXPECT_EQ(poll_all(), (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7}));
}

// The purpose of resizing: with its old size, the CQ would overrun.
TEST_F(ResizeCq, MakesRoomForCompletions) {
  CqPtr small = create_cq(2);
  QpPtr qp = create_qp(small.get(), small.get());
  ASSERT_NO_FATAL_FAILURE(to_init(qp.get()));
  const int wanted = small->cqe + 10;
  ASSERT_EQ(ibv_resize_cq(small.get(), wanted), 0);
  for (int i = 0; i < wanted; ++i) ASSERT_EQ(post_recv(qp.get(), static_cast<uint64_t>(i)), 0);
  ASSERT_NO_FATAL_FAILURE(to_error(qp.get()));
  EXPECT_EQ(poll_for(small.get(), static_cast<size_t>(wanted)).size(), static_cast<size_t>(wanted));
}

// "cqe must be at least the number of unpolled entries in the CQ."
TEST_F(ResizeCq, ToLessThanTheUnpolledEntriesFails) {
  for (uint64_t i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(deliver_message(i));
  const int before = cq->cqe;
  EXPECT_EQ(ibv_resize_cq(cq.get(), 4), EINVAL);
  EXPECT_EQ(cq->cqe, before);
  EXPECT_EQ(ibv_resize_cq(cq.get(), 5), 0);
  EXPECT_EQ(poll_all().size(), 5u);
}

// ibv_resize_cq(3): "or the value of errno on failure"
TEST_F(ResizeCq, ToASizeThatCannotBeFails) {
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  EXPECT_EQ(ibv_resize_cq(cq.get(), 0), EINVAL);
  EXPECT_EQ(ibv_resize_cq(cq.get(), -3), EINVAL);
  EXPECT_EQ(ibv_resize_cq(cq.get(), device.max_cqe + 1), EINVAL);
}

// A requested event arrives, whether it was requested before the resize or after it.
TEST_F(ResizeCq, KeepsTheRequestForNotification) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  ASSERT_EQ(ibv_resize_cq(cq.get(), 200), 0);
  ASSERT_NO_FATAL_FAILURE(deliver_message(1));
  EXPECT_EQ(take_event(channel.get()), cq.get());
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  EXPECT_FALSE(event_pending(channel.get())) << "for a completion that was there already";
  ASSERT_NO_FATAL_FAILURE(deliver_message(2));
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// Another thread polls during the resizes. It finds each completion once, in order.
TEST_F(ResizeCq, LosesNothingWhileOthersPollAndMessagesCome) {
  constexpr uint64_t kMessages = 500;
  std::vector<ibv_wc> found;
  std::atomic<uint64_t> polled{0};
  std::thread poller([&] {
    for (uint64_t i = 0; i < kMessages; ++i) {
      const std::vector<ibv_wc> next = poll_for(cq.get(), 1);
      found.insert(found.end(), next.begin(), next.end());
      ++polled;
    }
  });
  for (uint64_t i = 0; i < kMessages; ++i) {
    // A slot of the receive queue is free only after its completion was polled.
    while (i - polled >= kQueueDepth / 2) std::this_thread::yield();
    deliver_message(i);
    if (i % 10 == 0) {
      EXPECT_EQ(ibv_resize_cq(cq.get(), i % 20 == 0 ? 600 : 700), 0);
    }
  }
  poller.join();
  ASSERT_EQ(found.size(), kMessages);
  for (uint64_t i = 0; i < kMessages; ++i) ASSERT_EQ(found[i].wr_id, i);
}

// ibv_modify_cq(3): "number of completions per event".
TEST_F(ResizeCq, ModerationCollectsCompletionsForAnEvent) {
  ibv_device_attr_ex device{};
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &device), 0);
  ASSERT_GE(device.cq_mod_caps.max_cq_count, 3);
  ibv_modify_cq_attr attr{};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate.cq_count = 3;
  attr.moderate.cq_period = device.cq_mod_caps.max_cq_period;
  ASSERT_EQ(ibv_modify_cq(cq.get(), &attr), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(deliver_message(i));
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

// "cq_period: in micro seconds": after this time, fewer completions than cq_count cause the event,
// too.
TEST_F(ResizeCq, ModerationEndsWithItsPeriod) {
  ibv_modify_cq_attr attr{};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate = {.cq_count = 100, .cq_period = 1000};
  ASSERT_EQ(ibv_modify_cq(cq.get(), &attr), 0);
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  ASSERT_NO_FATAL_FAILURE(deliver_message(1));
  EXPECT_EQ(take_event(channel.get()), cq.get());
}

TEST_F(ResizeCq, ModifyAcceptsOnlyKnownAttributes) {
  ibv_modify_cq_attr attr{};
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), 0) << "nothing";
  attr.attr_mask = IBV_CQ_ATTR_RESERVED;
  EXPECT_EQ(ibv_modify_cq(cq.get(), &attr), EINVAL);
}

}  // namespace
}  // namespace rocemu::system_test
