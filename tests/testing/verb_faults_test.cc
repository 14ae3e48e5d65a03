// Tests rules that make calls fail which normally need no request to the daemon.
#include <cerrno>

#include "tests/testing/connection.h"

namespace rocemu::testing {
namespace {

using VerbFaults = Connection;

int post_send(ibv_qp* qp, ibv_send_wr** bad) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* failed = nullptr;
  const int error = ibv_post_send(qp, &wr, &failed);
  *bad = failed == &wr ? failed : nullptr;
  return error;
}

int post_recv(ibv_qp* qp) {
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp, &wr, &bad);
}

/// ibv_post_send(3): "If this function fails, bad_wr is the first failing WR". No request of the
/// failed call is posted.
TEST_F(VerbFaults, LetTheSecondPostSendFail) {
  fabric->add_rule("{name: full, on: verb, verb: post_send, nth: 2, do: {errno: ENOMEM}}");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(post_recv(sides[1].qp), 0);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(post_send(sides[0].qp, &bad), 0);
  EXPECT_EQ(post_send(sides[0].qp, &bad), ENOMEM);
  EXPECT_NE(bad, nullptr);
  EXPECT_EQ(post_send(sides[0].qp, &bad), 0);
  fabric->wait_until_idle();
  EXPECT_EQ(completions(sides[0]), 2);
  EXPECT_EQ(completions(sides[1]), 2);
  EXPECT_EQ(fabric->rules()[0].fired, 1u);
}

TEST_F(VerbFaults, ApplyOnlyToTheDeviceThatTheRuleNames) {
  fabric->add_rule("{name: full, on: verb, verb: post_recv, device: rocemu1, do: {errno: ENOMEM}}");
  EXPECT_EQ(post_recv(sides[0].qp), 0);
  EXPECT_EQ(post_recv(sides[1].qp), ENOMEM);
  fabric->clear_rules();
  EXPECT_EQ(post_recv(sides[1].qp), 0);
}

TEST_F(VerbFaults, LetPollingAndArmingFail) {
  fabric->add_rule("{name: poll, on: verb, verb: poll_cq, count: 1, do: {errno: EIO}}");
  fabric->add_rule("{name: arm, on: verb, verb: req_notify_cq, count: 1, do: {errno: EINVAL}}");
  ibv_wc wc;
  errno = 0;
  EXPECT_LT(ibv_poll_cq(sides[0].cq, 1, &wc), 0);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(ibv_poll_cq(sides[0].cq, 1, &wc), 0);
  EXPECT_EQ(ibv_req_notify_cq(sides[0].cq, 0), EINVAL);
  EXPECT_EQ(ibv_req_notify_cq(sides[0].cq, 0), 0);
}

TEST_F(VerbFaults, ApplyToASharedReceiveQueueAndAnExtendedCq) {
  fabric->add_rule("{name: post, on: verb, verb: post_srq_recv, count: 1, do: {errno: ENOMEM}}");
  fabric->add_rule("{name: poll, on: verb, verb: poll_cq, count: 1, do: {errno: EIO}}");
  ibv_srq_init_attr srq_init{};
  srq_init.attr = {4, 1, 0};
  ibv_srq* srq = ibv_create_srq(sides[0].pd, &srq_init);
  ASSERT_NE(srq, nullptr);
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
  EXPECT_EQ(bad, &wr);
  EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);

  ibv_cq_init_attr_ex cq_init{};
  cq_init.cqe = 4;
  ibv_cq_ex* cq = ibv_create_cq_ex(sides[0].context, &cq_init);
  ASSERT_NE(cq, nullptr);
  ibv_poll_cq_attr poll{};
  EXPECT_EQ(ibv_start_poll(cq, &poll), EIO);
  EXPECT_EQ(ibv_start_poll(cq, &poll), ENOENT);
  EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/// ibv_wr_complete(3) posts all requests that were built since ibv_wr_start, or none of them.
TEST_F(VerbFaults, ApplyToWorkRequestsThatAreBuilt) {
  fabric->add_rule("{name: full, on: verb, verb: post_send, count: 1, do: {errno: ENOMEM}}");
  ibv_qp_init_attr_ex init{};
  init.send_cq = init.recv_cq = sides[0].cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {4, 4, 1, 1, 0};
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.pd = sides[0].pd;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  ibv_qp* qp = ibv_create_qp_ex(sides[0].context, &init);
  ASSERT_NE(qp, nullptr);
  Side peer = sides[1];
  Side built = sides[0];
  built.qp = qp;
  connect(built, peer);
  ibv_qp_ex* builder = ibv_qp_to_qp_ex(qp);
  for (const int wanted : {ENOMEM, 0}) {
    ibv_wr_start(builder);
    builder->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(builder);
    EXPECT_EQ(ibv_wr_complete(builder), wanted);
  }
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

}  // namespace
}  // namespace rocemu::testing
