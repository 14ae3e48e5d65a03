// Tests ibv_create_qp(3) and ibv_create_qp_ex(3): which QPs can be created, with which limits, and
// with which errors others are refused.
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class CreateQp : public TransportTest {
 protected:
  ibv_qp_init_attr_ex wish(ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr_ex init{};
    init.qp_type = type;
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {.max_send_wr = 3,
                .max_recv_wr = 5,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = 10};
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = pd.get();
    return init;
  }

  QpPtr create(ibv_qp_init_attr_ex* init) {
    errno = 0;
    return QpPtr(ibv_create_qp_ex(context.get(), init));
  }

  void expect_refused(ibv_qp_init_attr_ex init, int error) {
    EXPECT_EQ(create(&init), nullptr);
    EXPECT_EQ(errno, error);
  }

  template <class Change>
  void expect_limit(uint32_t limit, Change change) {
    ibv_qp_init_attr_ex init = wish();
    change(init.cap) = limit;
    EXPECT_NE(create(&init), nullptr);
    init = wish();
    change(init.cap) = limit + 1;
    expect_refused(init, EINVAL);
  }
};

// "will update the qp_init_attr->cap struct with the actual QP values of the QP that was created;
// the values will be greater than or equal to the values requested."
TEST_F(CreateQp, ReturnsTheActualCapabilities) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    ibv_qp_init_attr_ex init = wish(type);
    const QpPtr qp = create(&init);
    ASSERT_NE(qp, nullptr);
    EXPECT_GE(init.cap.max_send_wr, 3u);
    EXPECT_GE(init.cap.max_recv_wr, 5u);
    EXPECT_GE(init.cap.max_send_sge, 2u);
    EXPECT_GE(init.cap.max_recv_sge, 1u);
    EXPECT_GE(init.cap.max_inline_data, 10u);
    EXPECT_EQ(qp->qp_type, type);
    EXPECT_EQ(qp->state, IBV_QPS_RESET);
    EXPECT_EQ(qp->pd, pd.get());
    EXPECT_EQ(qp->context, context.get());
    ibv_qp_attr attr{};
    ibv_qp_init_attr queried{};
    ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_CAP, &queried), 0);
    EXPECT_EQ(std::memcmp(&queried.cap, &init.cap, sizeof(init.cap)), 0);
    EXPECT_EQ(queried.send_cq, cq.get());
    EXPECT_EQ(queried.recv_cq, cq.get());
    EXPECT_EQ(queried.srq, nullptr);
    EXPECT_EQ(queried.sq_sig_all, 0);
  }
}

// "returns ... NULL if the request fails": a QP with one more than a limit of ibv_query_device(3)
// is refused.
TEST_F(CreateQp, TheLimitsAreTheDevices) {
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context.get(), &device), 0);
  const auto max_wr = static_cast<uint32_t>(device.max_qp_wr);
  const auto max_sge = static_cast<uint32_t>(device.max_sge);
  expect_limit(max_wr, [](ibv_qp_cap& cap) -> uint32_t& { return cap.max_send_wr; });
  expect_limit(max_wr, [](ibv_qp_cap& cap) -> uint32_t& { return cap.max_recv_wr; });
  expect_limit(max_sge, [](ibv_qp_cap& cap) -> uint32_t& { return cap.max_send_sge; });
  expect_limit(max_sge, [](ibv_qp_cap& cap) -> uint32_t& { return cap.max_recv_sge; });
}

// An RDMA NIC without Ethernet queues does not have the types "IBV_QPT_RAW_PACKET or
// IBV_QPT_DRIVER".
TEST_F(CreateQp, RefusesUnsupportedOptions) {
  expect_refused(wish(IBV_QPT_RAW_PACKET), EOPNOTSUPP);
  expect_refused(wish(IBV_QPT_DRIVER), EOPNOTSUPP);
  for (const uint32_t bit :
       {IBV_QP_INIT_ATTR_MAX_TSO_HEADER, IBV_QP_INIT_ATTR_IND_TABLE, IBV_QP_INIT_ATTR_RX_HASH}) {
    ibv_qp_init_attr_ex init = wish();
    init.comp_mask |= bit;
    expect_refused(init, EOPNOTSUPP);
  }
  for (const uint32_t flag :
       {IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, IBV_QP_CREATE_SCATTER_FCS, IBV_QP_CREATE_SOURCE_QPN}) {
    ibv_qp_init_attr_ex init = wish(IBV_QPT_UD);
    init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.create_flags = flag;
    expect_refused(init, EOPNOTSUPP);
  }
}

// The mask may name "create_flags" although no flag is set.
TEST_F(CreateQp, AcceptsZeroAsFlags) {
  ibv_qp_init_attr_ex init = wish();
  init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
  EXPECT_NE(create(&init), nullptr);
}

TEST_F(CreateQp, RefusesMissingObjects) {
  ibv_qp_init_attr_ex init = wish();
  init.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS;
  expect_refused(init, EINVAL);  // no PD
  init = wish();
  init.send_cq = nullptr;
  expect_refused(init, EINVAL);
  init = wish();
  init.recv_cq = nullptr;
  expect_refused(init, EINVAL);
  expect_refused(wish(static_cast<ibv_qp_type>(77)), EINVAL);
}

// "sq_sig_all: If set, each Work Request (WR) submitted to the SQ generates a completion entry"
TEST_F(CreateQp, SignalsAllIfItIsToldTo) {
  ibv_qp_init_attr_ex init = wish();
  init.sq_sig_all = 1;
  const QpPtr qp = create(&init);
  ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
  ASSERT_EQ(post_recv(qp.get(), 1), 0);
  ASSERT_EQ(post_send(qp.get(), 2, 0), 0);
  EXPECT_EQ(poll_for(cq.get(), 2).size(), 2u);
}

// ibv_qp_to_qp_ex() is for QPs "created using ibv_create_qp_ex() which allows setting the
// IBV_QP_INIT_ATTR_SEND_OPS_FLAGS".
TEST_F(CreateQp, HasTheExtendedInterfaceOnlyIfItWasAskedFor) {
  const QpPtr plain = try_qp({});
  const QpPtr extended = try_qp({.send_ops = IBV_QP_EX_WITH_SEND});
  ASSERT_TRUE(plain && extended);
  EXPECT_EQ(ibv_qp_to_qp_ex(plain.get()), nullptr);
  EXPECT_NE(ibv_qp_to_qp_ex(extended.get()), nullptr);
}

}  // namespace
}  // namespace rocemu::system_test
