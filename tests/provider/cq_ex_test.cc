// Tests the functions of an ibv_cq_ex, ibv_create_cq_ex(3), with a completion queue that the test
// fills.
#include <gtest/gtest.h>

#include <ctime>

#include "tests/provider/fake_queues.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/objects/make_cq.h"

namespace rocemu::provider {
namespace {

constexpr uint64_t kAllFields = uint64_t{IBV_WC_STANDARD_FLAGS} |
                                IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

uint64_t read_clock(clockid_t id) {
  timespec now;
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

class CqEx : public testing::Test {
 protected:
  CqEx() { make_extended(queues_.cq.get(), kAllFields); }

  int start() {
    ibv_poll_cq_attr attr{};
    return ibv_start_poll(cq_, &attr);
  }

  FakeQueues queues_;
  ibv_cq_ex* cq_ = &queues_.cq->verbs.cq_ex;
};

TEST_F(CqEx, RefusesToBePolledInWaysItDoesNotKnow) {
  queues_.complete(queues_.completion(1, 1));
  ibv_poll_cq_attr attr{.comp_mask = 1};
  EXPECT_EQ(ibv_start_poll(cq_, &attr), EINVAL);
  EXPECT_EQ(queues_.consumer_index(), 0u);
}

// "When no completions are available on the CQ, ENOENT is returned, but the CQ remains in a valid
// state." "If an error code is given, end_poll shouldn't be called."
TEST_F(CqEx, StartSaysThatItIsEmptyAndCanBeCalledAgain) {
  EXPECT_EQ(start(), ENOENT);
  EXPECT_EQ(start(), ENOENT);
  queues_.complete(queues_.completion(7, 1));
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(cq_->wr_id, 7u);
  ibv_end_poll(cq_);
}

TEST_F(CqEx, NextGoesThroughTheCompletionsUntilThereAreNoMore) {
  for (uint32_t i = 1; i <= 3; ++i) queues_.complete(queues_.completion(i, i));
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(cq_->wr_id, 1u);
  ASSERT_EQ(ibv_next_poll(cq_), 0);
  EXPECT_EQ(cq_->wr_id, 2u);
  ASSERT_EQ(ibv_next_poll(cq_), 0);
  EXPECT_EQ(cq_->wr_id, 3u);
  EXPECT_EQ(ibv_next_poll(cq_), ENOENT);
  queues_.complete(queues_.completion(4, 4));
  EXPECT_EQ(ibv_next_poll(cq_), 0) << "one that came in the meantime";
  EXPECT_EQ(cq_->wr_id, 4u);
  ibv_end_poll(cq_);
  EXPECT_EQ(queues_.consumer_index(), 4u);
  EXPECT_EQ(queues_.qp->send.released, 4u);
}

// While the second completion is being read, another thread may post into the slot of the first
// request. The completion of that request must find room in the CQ.
TEST_F(CqEx, ThereIsRoomForACompletionAsSoonAsForItsWorkRequest) {
  for (uint32_t i = 1; i <= 2; ++i) queues_.complete(queues_.completion(i, i));
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(queues_.qp->send.released, 1u);
  EXPECT_EQ(queues_.consumer_index(), 1u);
  ASSERT_EQ(ibv_next_poll(cq_), 0);
  EXPECT_EQ(queues_.qp->send.released, 2u);
  EXPECT_EQ(queues_.consumer_index(), 2u);
  ibv_end_poll(cq_);
}

TEST_F(CqEx, EndOfABatchLeavesTheRestForTheNext) {
  for (uint32_t i = 1; i <= 2; ++i) queues_.complete(queues_.completion(i, i));
  ASSERT_EQ(start(), 0);
  ibv_end_poll(cq_);
  EXPECT_EQ(queues_.consumer_index(), 1u);
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(cq_->wr_id, 2u);
  ibv_end_poll(cq_);
  EXPECT_EQ(start(), ENOENT);
}

TEST_F(CqEx, CanBePolledWithIbvPollCqToo) {
  for (uint32_t i = 1; i <= 2; ++i) queues_.complete(queues_.completion(i, i));
  ASSERT_EQ(start(), 0);
  ibv_end_poll(cq_);
  ibv_wc wc;
  ASSERT_EQ(poll_cq(queues_.cq_base(), 1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 2u);
}

TEST_F(CqEx, HasAFunctionForEachFieldOfACompletion) {
  abi::Cqe cqe = queues_.completion(0x1122334455667788, 1, abi::WorkQueue::kRecv);
  cqe.status = static_cast<uint32_t>(abi::WcStatus::kLocLenErr);
  cqe.opcode = static_cast<uint32_t>(abi::WcOpcode::kRecvRdmaWithImm);
  cqe.vendor_err = 3;
  cqe.byte_len = 4;
  cqe.imm_data = 5;
  cqe.src_qp = 6;
  cqe.wc_flags = IBV_WC_WITH_IMM | IBV_WC_GRH;
  cqe.slid = 7;
  cqe.sl = 9;
  cqe.dlid_path_bits = 10;
  cqe.timestamp_ns = 11;
  queues_.complete(cqe);
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(cq_->wr_id, 0x1122334455667788u);
  EXPECT_EQ(cq_->status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(ibv_wc_read_opcode(cq_), IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ibv_wc_read_vendor_err(cq_), 3u);
  EXPECT_EQ(ibv_wc_read_byte_len(cq_), 4u);
  EXPECT_EQ(ibv_wc_read_imm_data(cq_), 5u);
  EXPECT_EQ(ibv_wc_read_invalidated_rkey(cq_), 5u);
  EXPECT_EQ(ibv_wc_read_qp_num(cq_), FakeQueues::kQpNumber);
  EXPECT_EQ(ibv_wc_read_src_qp(cq_), 6u);
  EXPECT_EQ(ibv_wc_read_wc_flags(cq_), static_cast<unsigned>(IBV_WC_WITH_IMM | IBV_WC_GRH));
  EXPECT_EQ(ibv_wc_read_slid(cq_), 7u);
  EXPECT_EQ(ibv_wc_read_sl(cq_), 9);
  EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq_), 10);
  EXPECT_EQ(ibv_wc_read_completion_ts(cq_), 11u);
  ibv_end_poll(cq_);
}

// A completion's wall clock time depends neither on the present time of the system's clock nor on
// whether that clock was set in the meantime. A query of the raw clock uses the same clock as
// completions.
TEST_F(CqEx, ReadsTheTimestampOnTheWallClockThatTheDaemonBeganWith) {
  const uint64_t now = read_clock(CLOCK_MONOTONIC);
  constexpr uint64_t kHour = 3'600'000'000'000, kLongAgo = 1'000'000'000'000'000'000;
  queues_.parts().clock_start_ns = now - kHour;
  queues_.parts().wall_start_ns = kLongAgo;
  abi::Cqe cqe = queues_.completion(1, 1);
  cqe.timestamp_ns = kHour;  // that is, now
  queues_.complete(cqe);
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(ibv_wc_read_completion_wallclock_ns(cq_), kLongAgo + kHour);
  ibv_end_poll(cq_);
  ibv_values_ex values{};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | IBV_VALUES_MASK_RESERVED;
  ASSERT_EQ(query_rt_values(queues_.context(), &values), 0);
  EXPECT_EQ(values.comp_mask, unsigned{IBV_VALUES_MASK_RAW_CLOCK});
  EXPECT_EQ(values.raw_clock.tv_sec, 0);
  EXPECT_GE(static_cast<uint64_t>(values.raw_clock.tv_nsec), kHour);
}

// "Only fields that the user requested via wc_flags in ibv_create_cq_ex could be queried."
TEST_F(CqEx, HasNoFunctionForAFieldThatWasNotRequested) {
  Cq bare{};
  make_extended(&bare, IBV_WC_EX_WITH_IMM);
  EXPECT_NE(bare.verbs.cq_ex.read_imm_data, nullptr);
  EXPECT_NE(bare.verbs.cq_ex.read_opcode, nullptr);
  EXPECT_EQ(bare.verbs.cq_ex.read_byte_len, nullptr);
  EXPECT_EQ(bare.verbs.cq_ex.read_completion_ts, nullptr);
  EXPECT_EQ(bare.verbs.cq_ex.read_completion_wallclock_ns, nullptr);
}

TEST_F(CqEx, SkipsCompletionsFromBeforeAReset) {
  abi::Cqe old = queues_.completion(1, 2);
  old.qp_generation = FakeQueues::kGeneration - 1;
  queues_.complete(old);
  EXPECT_EQ(start(), ENOENT);
  EXPECT_EQ(queues_.consumer_index(), 1u) << "and still makes room";
  queues_.complete(old);
  queues_.complete(queues_.completion(2, 1));
  queues_.complete(old);
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(cq_->wr_id, 2u);
  EXPECT_EQ(ibv_next_poll(cq_), ENOENT);
  ibv_end_poll(cq_);
  EXPECT_EQ(queues_.consumer_index(), 4u);
}

TEST_F(CqEx, FailsOnceItOverran) {
  for (uint32_t i = 1; i <= 2; ++i) queues_.complete(queues_.completion(i, i));
  ASSERT_EQ(start(), 0);
  queues_.cq->ring->error = 1;
  EXPECT_EQ(ibv_next_poll(cq_), EIO);
  ibv_end_poll(cq_);
  EXPECT_EQ(start(), EIO);
  EXPECT_EQ(start(), EIO);
}

TEST_F(CqEx, FailsSoonAfterTheDaemonDied) {
  queues_.daemon_dies();
  int result = ENOENT;
  for (int i = 0; i < 1000 && result == ENOENT; ++i) result = start();
  EXPECT_EQ(result, EIO);
}

TEST_F(CqEx, CanBeArmedInTheMiddleOfABatch) {
  queues_.complete(queues_.completion(1, 1));
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(req_notify_cq(queues_.cq_base(), 0), 0);
  EXPECT_EQ(queues_.last_doorbell().value, 1u);
  ibv_end_poll(cq_);
}

}  // namespace
}  // namespace rocemu::provider
