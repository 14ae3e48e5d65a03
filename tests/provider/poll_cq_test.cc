// Tests ibv_poll_cq(3) and ibv_req_notify_cq(3) with a completion queue that the test fills.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/provider/fake_queues.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/backlog.h"
#include "verbs_provider/objects/make_cq.h"
#include "verbs_provider/polling/cq_rotation.h"
#include "verbs_provider/polling/empty_poll.h"
#include "verbs_provider/structs/cq_sharing.h"

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

// ibv_poll_cq(3): a CQ that overran cannot be used.
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

/// Runs a test in a new thread, because measurements are kept for each thread.
void in_new_thread(const std::function<void()>& work) {
  std::thread(work).join();
}

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

TEST_F(PollCq, AProgramFarAheadWaitsForSeveralCompletions) {
  in_new_thread([this] {
    for (int i = 0; i < 65; ++i) note_poll(queues_.cq.get());
    // A completion is expected every 20 us, from a minute in the future on, so that the duration of
    // the test has no influence.
    const int64_t begin = now_ns() + 60'000'000'000;
    for (int64_t at = begin; at < begin + 10'000'000; at += 20'000) {
      backlog().completions_to_await(at);
      backlog().sends_end(1, 127);
    }
    const EmptyPoll late(queues_.cq.get());
    EXPECT_EQ(queues_.cq->ring->waiting, 0u) << "the daemon would not wake it";
    queues_.cq->ring->watched = 1;
    EmptyPoll empty(queues_.cq.get());
    EXPECT_EQ(queues_.cq->ring->waiting, 1u);
    EXPECT_EQ(queues_.cq->ring->wake_at, 20u);
    EXPECT_TRUE(empty.wait(queues_.cq_base()->context)) << "not for ever";
  });
}

/// Makes the thread's policy believe that the processors are crowded: each yield takes a time
/// slice.
void find_a_crowd() {
  for (uint32_t i = 0; i < kWaitConstants.long_yields; ++i) wait_policy().gave_way(4'000'000);
  wait_policy().finds();
}

// A program that waits for events polls until the CQ is empty, requests the next event, polls once
// more, and then blocks.
TEST_F(PollCq, InACrowdAProgramThatWaitsForEventsIsNotHeldUp) {
  in_new_thread([this] {
    find_a_crowd();
    queues_.cq->notifies = true;
    for (int polls = 0; polls < 2; ++polls) {
      EmptyPoll empty(queues_.cq.get());
      EXPECT_EQ(queues_.cq->ring->waiting, 0u);
      EXPECT_TRUE(empty.wait(queues_.cq_base()->context));
    }
    const EmptyPoll empty(queues_.cq.get());
    EXPECT_EQ(queues_.cq->ring->waiting, 1u) << "it polls on";
  });
}

TEST_F(PollCq, InACrowdTheNextCompletionWakes) {
  in_new_thread([this] {
    find_a_crowd();
    EmptyPoll empty(queues_.cq.get());
    EXPECT_EQ(queues_.cq->ring->waiting, 1u);
    EXPECT_EQ(queues_.cq->ring->wake_at, 1u);
    EXPECT_TRUE(empty.wait(queues_.cq_base()->context)) << "not for ever";
  });
}

/// Calls `poll` `polls` times; each call must return `nothing`. Returns how many calls announce a
/// sleep to the daemon.
int sleeps_in(abi::CqRing& ring, int polls, const std::function<int()>& poll, int nothing) {
  int sleeps = 0;
  for (int i = 0; i < polls; ++i) {
    EXPECT_EQ(poll(), nothing);
    sleeps += static_cast<int>(ring.waiting.exchange(0));
  }
  return sleeps;
}

// Each empty poll earns 1 us, and a sleep costs 850 us, so only few polls sleep. If all did, a
// million polls of 1 ms each would take a quarter of an hour.
TEST_F(PollCq, InACrowdFewPollsSleep) {
  in_new_thread([this] {
    find_a_crowd();
    // Before the thread appears to poll only this CQ, its sleeps are shorter: 100 us.
    const int sleeps = sleeps_in(
        *queues_.cq->ring, 20'000, [this] { return poll(); }, 0);
    EXPECT_GT(sleeps, 1);
    EXPECT_LE(sleeps, 1 + 850 / 100 + 20'000 / 850);
  });
}

TEST_F(PollCq, InACrowdFewExtendedPollsSleep) {
  make_extended(queues_.cq.get(), 0);
  in_new_thread([this] {
    find_a_crowd();
    ibv_poll_cq_attr attributes{};
    ibv_cq_ex* cq = &queues_.cq->verbs.cq_ex;
    const int sleeps = sleeps_in(
        *queues_.cq->ring, 20'000, [&] { return ibv_start_poll(cq, &attributes); }, ENOENT);
    EXPECT_GT(sleeps, 1);
    EXPECT_LE(sleeps, 1 + 850 / 100 + 20'000 / 850);
  });
}

TEST_F(PollCq, InACrowdFewPollsOfSeveralQueuesSleep) {
  FakeQueues others;
  in_new_thread([&] {
    find_a_crowd();
    const auto poll_both = [&] { return poll() + poll_cq(others.cq_base(), 8, wc_); };
    int sleeps = sleeps_in(*queues_.cq->ring, 10'000, poll_both, 0);
    sleeps += sleeps_in(*others.cq->ring, 10'000, poll_both, 0);
    EXPECT_GT(sleeps, 1);
    EXPECT_LE(sleeps, (850 + 40'000) / 100);
  });
}

// If several threads poll a CQ, they probably do so under a lock, as the threads of UCX do
// (MPI_THREAD_MULTIPLE).
TEST_F(PollCq, InACrowdPollsOfAQueueThatSeveralThreadsPollDoNotSleep) {
  EXPECT_EQ(poll(), 0);
  in_new_thread([this] {
    find_a_crowd();
    EXPECT_EQ(sleeps_in(
                  *queues_.cq->ring, 50'000, [this] { return poll(); }, 0),
              0);
  });
}

TEST_F(PollCq, InACrowdPollsOfAnOverrunQueueDoNotSleep) {
  queues_.cq->ring->error = 1;
  in_new_thread([this] {
    find_a_crowd();
    EXPECT_EQ(sleeps_in(
                  *queues_.cq->ring, 10'000, [this] { return poll(); }, -1),
              0);
  });
}

TEST_F(PollCq, OtherPollsYield) {
  in_new_thread([this] {
    EmptyPoll empty(queues_.cq.get());
    EXPECT_EQ(queues_.cq->ring->waiting, 0u);
  });
}

TEST(CqRotation, AThreadWithOneCqWaitsAtEachPoll) {
  const int cq = 0;
  CqRotation rotation;
  for (int i = 0; i < 100; ++i) {
    rotation.polls(&cq);
    EXPECT_TRUE(rotation.waits(&cq));
  }
  EXPECT_TRUE(rotation.is_of_one());
}

TEST(CqRotation, AThreadWithSeveralWaitsWhereTheLatestCompletionWas) {
  const std::array<int, 4> cqs{};
  CqRotation rotation;
  rotation.finds(&cqs[2]);
  for (int i = 0; i < 100; ++i) {
    for (const int& cq : cqs) {
      rotation.polls(&cq);
      EXPECT_EQ(rotation.waits(&cq), &cq == &cqs[2]);
    }
  }
  EXPECT_FALSE(rotation.is_of_one());
}

TEST(CqRotation, AThreadThatPollsElsewhereForLongWaitsThere) {
  const std::array<int, 2> cqs{};
  CqRotation rotation;
  rotation.finds(&cqs[0]);
  int skipped = 0;
  while (!rotation.waits(&cqs[1])) ++skipped;
  EXPECT_EQ(skipped, 31);
  EXPECT_TRUE(rotation.waits(&cqs[1])) << "and now always";
}

// ib_send_lat waits for its send's completion in one CQ, and for the reply in another.
TEST(CqRotation, AThreadThatPollsACqAgainWaitsThere) {
  const std::array<int, 2> cqs{};
  CqRotation rotation;
  for (int i = 0; i < 10; ++i) {
    for (const int& cq : cqs) {
      rotation.polls(&cq);
      if (i != 0) {
        EXPECT_FALSE(rotation.waits(&cq)) << "the completion may be in another CQ";
      }
      rotation.polls(&cq);
      EXPECT_TRUE(rotation.waits(&cq));
      rotation.polls(&cq);
      rotation.finds(&cq);
    }
  }
}

TEST(CqSharing, AQueueOfOneThreadIsNotShared) {
  const int thread = 0;
  CqSharing sharing;
  for (int i = 0; i < 100; ++i) {
    sharing.polls(&thread);
    ASSERT_FALSE(sharing.is_shared());
  }
}

TEST(CqSharing, AQueueThatAnotherThreadPollsIsSharedUntilThatHasStoppedForLong) {
  const std::array<int, 2> threads{};
  CqSharing sharing;
  sharing.polls(&threads[0]);
  for (int round = 0; round < 3; ++round) {
    for (const int& thread : threads) {
      sharing.polls(&thread);
    }
    ASSERT_TRUE(sharing.is_shared());
  }
  for (int i = 0; i < (1 << 20) - 1; ++i) sharing.polls(&threads[1]);
  EXPECT_TRUE(sharing.is_shared());
  sharing.polls(&threads[1]);
  EXPECT_FALSE(sharing.is_shared());
}

TEST(CqSharing, AFewPollsBetweenManyOfAnotherThreadAreAVisit) {
  const int regular = 0, visitor = 0;
  CqSharing sharing;
  const auto poll_often = [&](const int& thread) {
    for (int i = 0; i < 65; ++i) sharing.polls(&thread);
  };
  poll_often(regular);
  EXPECT_FALSE(sharing.is_visit());
  for (int i = 0; i < 3; ++i) {
    sharing.polls(&visitor);
    EXPECT_TRUE(sharing.is_visit());
  }
  sharing.polls(&regular);
  EXPECT_FALSE(sharing.is_visit()) << "the visitor has polled only three times";
  poll_often(visitor);
  EXPECT_FALSE(sharing.is_visit()) << "it stays";
}

TEST(CqSharing, AVisitorThatStaysIsRegular) {
  const int first = 0, second = 0;
  CqSharing sharing;
  for (int i = 0; i < 65; ++i) sharing.polls(&first);
  for (int i = 0; i < 64; ++i) {
    sharing.polls(&second);
    EXPECT_TRUE(sharing.is_visit());
  }
  sharing.polls(&second);
  EXPECT_FALSE(sharing.is_visit());
}

TEST(CqSharing, ThreadsThatAlternateDoNotVisit) {
  const int first = 0, second = 0;
  CqSharing sharing;
  for (int i = 0; i < 1000; ++i) {
    sharing.polls(i % 2 == 0 ? &first : &second);
    EXPECT_FALSE(sharing.is_visit());
  }
}

TEST_F(PollCq, ArmingReportsThePolledPosition) {
  queues_.complete(queues_.completion(1, 1));
  EXPECT_EQ(req_notify_cq(queues_.cq_base(), 0), 0);
  EXPECT_EQ(queues_.last_doorbell().kind, abi::DoorbellKind::kCqArm);
  EXPECT_EQ(queues_.last_doorbell().value, 1u);
  EXPECT_EQ(req_notify_cq(queues_.cq_base(), 1), 0);
  EXPECT_EQ(queues_.last_doorbell().value, 1u | abi::kCqArmSolicited);
}

}  // namespace
}  // namespace rocemu::provider
