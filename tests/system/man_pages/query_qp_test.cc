// Tests ibv_query_qp(3): the attributes that change without ibv_modify_qp(3). The man page says
// only "RQ Packet Sequence Number"; rxe and mlx5 return the PSNs of the next packets.
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class QueryQp : public VerbsTest {
 protected:
  static constexpr uint32_t kFirstPsn = 100;  // the value that to_rtr() and to_rts() set

  void SetUp() override {
    VerbsTest::SetUp();
    cq = create_cq();
    sender = create_qp(cq.get(), cq.get());
    receiver = create_qp(cq.get(), cq.get());
    ASSERT_NO_FATAL_FAILURE(connect(sender.get(), receiver.get()));
  }
  static ibv_qp_attr query(ibv_qp* qp) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init), 0);
    return attr;
  }
  void expect_psns(ibv_qp* qp, uint32_t sent, uint32_t expected) {
    settle();
    const ibv_qp_attr attr = query(qp);
    EXPECT_EQ(attr.sq_psn, kFirstPsn + sent);
    EXPECT_EQ(attr.rq_psn, kFirstPsn + expected);
  }
  /// Sends a message of `packets` packets of 1024 bytes.
  void send(uint32_t packets) {
    ASSERT_EQ(post_recv(receiver.get(), 1), 0);
    ASSERT_EQ(post_send(sender.get(), 2, IBV_SEND_SIGNALED, packets * 1024), 0);
    ASSERT_EQ(poll_for(cq.get(), 2).size(), 2u);
  }

  CqPtr cq;
  QpPtr sender, receiver;
};

TEST_F(QueryQp, ReturnsTheNextPsnsOfBothDirections) {
  expect_psns(sender.get(), 0, 0);
  ASSERT_NO_FATAL_FAILURE(send(1));
  expect_psns(sender.get(), 1, 0);
  expect_psns(receiver.get(), 0, 1);
  ASSERT_NO_FATAL_FAILURE(send(3));
  expect_psns(sender.get(), 4, 0);
  expect_psns(receiver.get(), 0, 4);
}

TEST_F(QueryQp, ReturnsTheStateThatAQpCameToByItself) {
  ASSERT_EQ(post_recv(receiver.get(), 1, 1, 8), 0);
  ASSERT_EQ(post_send(sender.get(), 2, IBV_SEND_SIGNALED, 100), 0);
  ASSERT_EQ(poll_for(cq.get(), 2).size(), 2u);
  settle();
  for (ibv_qp* qp : {sender.get(), receiver.get()}) {
    const ibv_qp_attr attr = query(qp);
    EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
    EXPECT_EQ(attr.cur_qp_state, IBV_QPS_ERR);
    EXPECT_EQ(attr.sq_draining, 0);
    EXPECT_EQ(attr.path_mig_state, IBV_MIG_MIGRATED);
  }
  EXPECT_EQ(query(sender.get()).sq_psn, kFirstPsn + 1);
}

// IBTA vol 1, 10.3.1.1: a QP in RESET is like a new one.
TEST_F(QueryQp, ReturnsNoPsnsOfAQpThatWasReset) {
  ASSERT_NO_FATAL_FAILURE(send(1));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(sender.get(), &attr, IBV_QP_STATE), 0);
  attr = query(sender.get());
  EXPECT_EQ(attr.sq_psn, 0u);
  EXPECT_EQ(attr.rq_psn, 0u);
}

}  // namespace
}  // namespace rocemu::system_test
