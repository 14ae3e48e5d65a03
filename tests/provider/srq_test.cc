// Tests ibv_post_srq_recv(3) with an SRQ that the test reads, and which WQEs a poll returns to the
// SRQ.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/provider/fake_queues.h"
#include "verbs_provider/base/verbs.h"

namespace rocemu::provider {
namespace {

class SrqQueue : public testing::Test {
 protected:
  int post(ibv_recv_wr* list) {
    bad_ = nullptr;
    return post_srq_recv(queues_.srq_base(), list, &bad_);
  }
  void fill() {
    for (uint32_t i = 0; i < FakeQueues::kMaxWr; ++i) ASSERT_EQ(post(&wr_), 0);
  }
  int poll() { return poll_cq(queues_.cq_base(), 1, &wc_); }

  FakeQueues queues_;
  ibv_recv_wr wr_{};
  ibv_recv_wr* bad_ = nullptr;
  ibv_wc wc_{};
};

TEST_F(SrqQueue, ReceivesGoIntoItsSlotsWithOneDoorbell) {
  ibv_sge sges[2] = {{0x1000, 10, 1}, {0x2000, 20, 2}};
  ibv_recv_wr second{.wr_id = 9, .next = nullptr, .sg_list = sges, .num_sge = 2};
  wr_.next = &second;
  ASSERT_EQ(post(&wr_), 0);
  EXPECT_EQ(queues_.doorbell_count(), 1u);
  EXPECT_EQ(queues_.last_doorbell().kind, abi::DoorbellKind::kSrqRecv);
  EXPECT_EQ(queues_.last_doorbell().object, FakeQueues::kSrqNumber);
  EXPECT_EQ(queues_.last_doorbell().value, 2u);
  abi::RecvWqe wqe;
  memcpy(&wqe, queues_.srq_slot(1), sizeof(wqe));
  EXPECT_EQ(wqe.wr_id, 9u);
  EXPECT_EQ(wqe.num_sge, 2u);
  EXPECT_EQ(memcmp(queues_.srq_slot(1) + sizeof(wqe), sges, sizeof(sges)), 0);
}

// ibv_post_srq_recv(3) stops at the first failure and returns the failed request through bad_wr.
TEST_F(SrqQueue, RefusesTooManySgesAndWhatComesBehind) {
  ibv_recv_wr second{}, third{};
  wr_.next = &second;
  second.next = &third;
  second.num_sge = FakeQueues::kMaxSge + 1;
  EXPECT_EQ(post(&wr_), EINVAL);
  EXPECT_EQ(bad_, &second);
  EXPECT_EQ(queues_.last_doorbell().value, 1u);
  second.num_sge = -1;
  EXPECT_EQ(post(&second), EINVAL);
}

TEST_F(SrqQueue, IsFullUntilACompletionIsPolledAndEachMakesRoomForOne) {
  fill();
  EXPECT_EQ(post(&wr_), ENOMEM);
  EXPECT_EQ(bad_, &wr_);
  queues_.complete(queues_.srq_completion(1));
  EXPECT_EQ(post(&wr_), ENOMEM) << "it is polling that counts, not the daemon's speed";
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_.wr_id, 1u);
  EXPECT_EQ(post(&wr_), 0);
  EXPECT_EQ(post(&wr_), ENOMEM);
}

TEST_F(SrqQueue, CompletionsLeaveTheReceiveQueueOfTheQpAlone) {
  queues_.qp->recv.posted = 3;
  queues_.complete(queues_.srq_completion(1));
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(queues_.qp->recv.released, 0u);
}

TEST_F(SrqQueue, GetsItsSlotBackFromAQpThatIsGoneOrWasReset) {
  fill();
  queues_.complete(queues_.srq_completion(1, 0x999));
  abi::Cqe before_reset = queues_.srq_completion(2);
  before_reset.qp_generation = FakeQueues::kGeneration - 1;
  queues_.complete(before_reset);
  EXPECT_EQ(poll(), 0) << "nobody sees the completions";
  EXPECT_EQ(post(&wr_), 0);
  EXPECT_EQ(post(&wr_), 0);
  EXPECT_EQ(post(&wr_), ENOMEM);
}

TEST_F(SrqQueue, SkipsCompletionsOfAnEarlierQpWithTheSameNumber) {
  queues_.qp->recv.first_completion = 1;
  queues_.complete(queues_.srq_completion(1));
  queues_.complete(queues_.srq_completion(2));
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_.wr_id, 2u);
}

class XrcSrqQueue : public SrqQueue {
 protected:
  XrcSrqQueue() {
    queues_.srq->type = IBV_SRQT_XRC;
    queues_.srq->cq = queues_.cq.get();
  }
};

TEST_F(XrcSrqQueue, GetsMessagesThroughTheQpsOfOtherProcesses) {
  queues_.complete(queues_.srq_completion(1, 0x999));
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_.qp_num, 0x999u);
  EXPECT_EQ(queues_.srq->recv.released, 1u);
}

TEST_F(XrcSrqQueue, HasNoCompletionsOnceItIsGone) {
  queues_.parts().srqs.remove(FakeQueues::kSrqNumber, queues_.srq.get());
  queues_.complete(queues_.srq_completion(1));
  EXPECT_EQ(poll(), 0);
  EXPECT_EQ(queues_.consumer_index(), 1u);
}

TEST_F(XrcSrqQueue, SkipsCompletionsOfAnEarlierSrqWithTheSameNumber) {
  queues_.srq->first_completion = 1;
  queues_.complete(queues_.srq_completion(1));
  queues_.complete(queues_.srq_completion(2));
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_.wr_id, 2u);
  EXPECT_EQ(queues_.srq->recv.released, 1u);
}

TEST_F(SrqQueue, HasANumberOnlyIfItIsForXrc) {
  uint32_t number = 0;
  EXPECT_EQ(get_srq_num(queues_.srq_base(), &number), EINVAL);
  queues_.srq->type = IBV_SRQT_XRC;
  EXPECT_EQ(get_srq_num(queues_.srq_base(), &number), 0);
  EXPECT_EQ(number, FakeQueues::kSrqNumber);
}

// A QP with an SRQ has no receive queue of its own.
TEST_F(SrqQueue, IsWhereReceivesOfItsQpsArePosted) {
  queues_.qp->verbs.qp.srq = queues_.srq_base();
  EXPECT_EQ(post_recv(queues_.qp_base(), &wr_, &bad_), EINVAL);
  EXPECT_EQ(bad_, &wr_);
}

}  // namespace
}  // namespace rocemu::provider
