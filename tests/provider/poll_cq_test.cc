// ibv_poll_cq(3) and ibv_req_notify_cq(3) over a completion queue that the test fills.
#include <gtest/gtest.h>

#include "tests/provider/fake_queues.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/polling/empty_poll.h"

namespace rocemu::provider {
namespace {

class PollCq : public testing::Test {
 protected:
  int poll(int count = 8) { return poll_cq(queues_.cq_base(), count, wc_); }

  FakeQueues queues_;
  ibv_wc wc_[8];
};

TEST_F(PollCq, OfAnEmptyQueueTakesNothingAndRingsNothing) {
  EXPECT_EQ(poll(), 0);
  EXPECT_EQ(queues_.doorbell_count(), 0u);
}

TEST_F(PollCq, ReturnsAllFieldsOfACompletion) {
  abi::Cqe cqe = queues_.completion(0x1122334455667788, 1, abi::WorkQueue::kRecv);
  cqe.status = static_cast<uint32_t>(abi::WcStatus::kSuccess);
  cqe.opcode = static_cast<uint32_t>(abi::WcOpcode::kRecvRdmaWithImm);
  cqe.vendor_err = 3;
  cqe.byte_len = 4;
  cqe.imm_data = 5;
  cqe.src_qp = 6;
  cqe.wc_flags = IBV_WC_WITH_IMM | IBV_WC_GRH;
  cqe.slid = 7;
  cqe.pkey_index = 8;
  cqe.sl = 9;
  cqe.dlid_path_bits = 10;
  queues_.complete(cqe);
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_[0].wr_id, 0x1122334455667788u);
  EXPECT_EQ(wc_[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc_[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(wc_[0].vendor_err, 3u);
  EXPECT_EQ(wc_[0].byte_len, 4u);
  EXPECT_EQ(wc_[0].imm_data, 5u);
  EXPECT_EQ(wc_[0].qp_num, FakeQueues::kQpNumber);
  EXPECT_EQ(wc_[0].src_qp, 6u);
  EXPECT_EQ(wc_[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM | IBV_WC_GRH));
  EXPECT_EQ(wc_[0].slid, 7);
  EXPECT_EQ(wc_[0].pkey_index, 8);
  EXPECT_EQ(wc_[0].sl, 9);
  EXPECT_EQ(wc_[0].dlid_path_bits, 10);
}

TEST_F(PollCq, TakesNoMoreThanAskedForAndSaysHowManyItTook) {
  for (uint32_t i = 1; i <= 3; ++i) queues_.complete(queues_.completion(i, i));
  EXPECT_EQ(poll(2), 2);
  EXPECT_EQ(wc_[1].wr_id, 2u);
  EXPECT_EQ(queues_.consumer_index(), 2u);
  EXPECT_EQ(poll(2), 1);
  EXPECT_EQ(wc_[0].wr_id, 3u);
  EXPECT_EQ(queues_.consumer_index(), 3u);
  EXPECT_EQ(queues_.doorbell_count(), 0u);
}

TEST_F(PollCq, GoesRoundTheRing) {
  for (uint32_t i = 1; i <= 10; ++i) {
    queues_.complete(queues_.completion(i, i));
    ASSERT_EQ(poll(), 1);
    ASSERT_EQ(wc_[0].wr_id, i);
  }
}

TEST_F(PollCq, GivesBackTheSlotsOfAllEarlierWqesOfTheQueue) {
  queues_.qp->send.posted = 3;
  EXPECT_TRUE(queues_.qp->send.is_full());
  queues_.complete(queues_.completion(3, 3));
  EXPECT_TRUE(queues_.qp->send.is_full()) << "it is polling that gives them back";
  EXPECT_EQ(poll(), 1);
  EXPECT_EQ(queues_.qp->send.released, 3u);
  EXPECT_EQ(queues_.qp->recv.released, 0u);
}

TEST_F(PollCq, SkipsCompletionsFromBeforeAReset) {
  abi::Cqe old = queues_.completion(1, 2);
  old.qp_generation = FakeQueues::kGeneration - 1;
  queues_.complete(old);
  queues_.complete(queues_.completion(2, 1));
  ASSERT_EQ(poll(1), 1);
  EXPECT_EQ(wc_[0].wr_id, 2u);
  EXPECT_EQ(queues_.qp->send.released, 1u);
  EXPECT_EQ(queues_.consumer_index(), 2u);
}

TEST_F(PollCq, SkipsCompletionsOfAQpThatIsGoneAndStillMakesRoom) {
  abi::Cqe other = queues_.completion(1, 1);
  other.qp_num = 0x999;
  queues_.complete(other);
  EXPECT_EQ(poll(), 0);
  EXPECT_EQ(queues_.consumer_index(), 1u);
}

TEST_F(PollCq, SkipsCompletionsOfAnEarlierQpWithTheSameNumber) {
  queues_.complete(queues_.completion(1, 1));
  queues_.qp->send.first_completion = queues_.cq->produced();
  queues_.complete(queues_.completion(2, 1));
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_[0].wr_id, 2u);
}

// ibv_poll_cq(3): an overrun CQ cannot be used.
TEST_F(PollCq, OfAnOverrunQueueFails) {
  queues_.complete(queues_.completion(1, 1));
  queues_.cq->ring->error = 1;
  EXPECT_LT(poll(), 0);
}

TEST_F(PollCq, FailsSoonAfterTheDaemonDied) {
  queues_.complete(queues_.completion(1, 1));
  queues_.daemon_dies();
  EXPECT_EQ(poll(), 1) << "what is there can still be taken";
  int result = 0;
  for (int i = 0; i < 1000 && result == 0; ++i) result = poll();
  EXPECT_LT(result, 0);
}

TEST_F(PollCq, WhoIsFarAheadSaysWhenToWakeIt) {
  queues_.complete(queues_.completion(1, 1));
  EXPECT_EQ(poll(), 1);
  EmptyPoll empty(queues_.cq.get(), {.produced = 1, .to_sleep_for = 30});
  EXPECT_EQ(queues_.cq->ring->waiting, 1u);
  EXPECT_EQ(queues_.cq->ring->wake_at, 31u);
  EXPECT_TRUE(empty.wait(queues_.cq_base()->context)) << "not for ever";
}

TEST_F(PollCq, InACrowdTheNextCompletionWakes) {
  queues_.cq->crowded = 2;
  EmptyPoll empty(queues_.cq.get(), {.produced = 0, .to_sleep_for = 30});
  EXPECT_EQ(queues_.cq->ring->waiting, 1u);
  EXPECT_EQ(queues_.cq->ring->wake_at, 1u);
  EXPECT_EQ(queues_.cq->crowded, 1u);
}

TEST_F(PollCq, OthersGiveWay) {
  EmptyPoll empty(queues_.cq.get(), {.produced = 0});
  EXPECT_EQ(queues_.cq->ring->waiting, 0u);
}

TEST_F(PollCq, ArmingTellsWhatCouldHaveBeenSeen) {
  queues_.complete(queues_.completion(1, 1));
  EXPECT_EQ(req_notify_cq(queues_.cq_base(), 0), 0);
  EXPECT_EQ(queues_.last_doorbell().kind, abi::DoorbellKind::kCqArm);
  EXPECT_EQ(queues_.last_doorbell().value, 1u);
  EXPECT_EQ(req_notify_cq(queues_.cq_base(), 1), 0);
  EXPECT_EQ(queues_.last_doorbell().value, 1u | abi::kCqArmSolicited);
}

}  // namespace
}  // namespace rocemu::provider
