// Tests objects of another context, and handles that belong to another context or to none.
#include <utility>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class ForeignObjects : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    other = open_device();
    ASSERT_NE(other, nullptr);
    other_pd.reset(ibv_alloc_pd(other.get()));
    ASSERT_NE(other_pd, nullptr);
    other_cq.reset(ibv_create_cq(other.get(), 16, nullptr, nullptr, 0));
    other_mr.reset(ibv_reg_mr(other_pd.get(), memory.data(), memory.size(),
                              IBV_ACCESS_LOCAL_WRITE | kRemoteAccess));
    ASSERT_TRUE(other_cq && other_mr);
  }

  ibv_qp_init_attr_ex wish() {
    ibv_qp_init_attr_ex init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {4, 4, 1, 1, 0};
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = pd.get();
    return init;
  }
  void expect_no_qp(ibv_qp_init_attr_ex init) {
    errno = 0;
    EXPECT_EQ(ibv_create_qp_ex(context.get(), &init), nullptr);
    EXPECT_EQ(errno, ENOENT);
  }
  /// Returns the status of an RDMA request with these keys, from one QP to another.
  ibv_wc_status status_of(ibv_wr_opcode opcode, uint32_t lkey, uint32_t rkey) {
    const QpPtr sender = make_qp({}), receiver = make_qp({});
    bring_up_pair(sender.get(), receiver.get());
    ibv_send_wr wr = request(opcode, 1);
    entry.lkey = lkey;
    wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(slot(2)), .rkey = rkey};
    EXPECT_EQ(post(sender.get(), wr), 0);
    return next_status();
  }

  ContextPtr other;
  PdPtr other_pd;
  CqPtr other_cq;
  MrPtr other_mr;
};

TEST_F(ForeignObjects, CannotBeUsedForAQp) {
  ibv_qp_init_attr_ex init = wish();
  init.pd = other_pd.get();
  expect_no_qp(init);
  init = wish();
  init.send_cq = other_cq.get();
  expect_no_qp(init);
  init = wish();
  init.recv_cq = other_cq.get();
  expect_no_qp(init);
  ibv_srq_init_attr srq_init{};
  srq_init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  const SrqPtr srq(ibv_create_srq(other_pd.get(), &srq_init));
  ASSERT_NE(srq, nullptr);
  init = wish();
  init.srq = srq.get();
  expect_no_qp(init);
}

TEST_F(ForeignObjects, KeysOfOtherContextsAreInvalid) {
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
    EXPECT_EQ(status_of(opcode, mr->lkey, remote_mr->rkey), IBV_WC_SUCCESS);
    EXPECT_EQ(status_of(opcode, other_mr->lkey, remote_mr->rkey), IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(status_of(opcode, mr->lkey, other_mr->rkey), IBV_WC_REM_ACCESS_ERR);
  }
}

// Another PD of the same context is as foreign as one of another context.
TEST_F(ForeignObjects, KeysOfAnotherPdAreInvalid) {
  const PdPtr second(ibv_alloc_pd(context.get()));
  const MrPtr mr_of_second(ibv_reg_mr(second.get(), memory.data(), memory.size(),
                                      IBV_ACCESS_LOCAL_WRITE | kRemoteAccess));
  ASSERT_NE(mr_of_second, nullptr);
  EXPECT_EQ(status_of(IBV_WR_RDMA_WRITE, mr_of_second->lkey, remote_mr->rkey), IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(status_of(IBV_WR_RDMA_WRITE, mr->lkey, mr_of_second->rkey), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ForeignObjects, AnAddressHandleOfAnotherPdIsInvalid) {
  ibv_ah_attr attr = address_of_own();
  const PdPtr second(ibv_alloc_pd(context.get()));
  for (ibv_pd* foreign : {other_pd.get(), second.get()}) {
    const AhPtr ah(ibv_create_ah(foreign, &attr));
    ASSERT_NE(ah, nullptr);
    const QpPtr qp = make_qp({.type = IBV_QPT_UD});
    ASSERT_NO_FATAL_FAILURE(bring_up(qp.get()));
    ibv_send_wr wr = request(IBV_WR_SEND, 1);
    wr.wr.ud = {.ah = ah.get(), .remote_qpn = qp->qp_num, .remote_qkey = kQkey};
    ASSERT_EQ(post(qp.get(), wr), 0);
    EXPECT_EQ(next_status(), IBV_WC_LOC_QP_OP_ERR);
  }
}

// Tests handles of another context, and handles that a wrong program may invent.
TEST_F(ForeignObjects, HandlesOfOtherClientsAndUnknownHandlesAreInvalid) {
  for (const uint32_t handle : {other_pd->handle, 0u, 4711u, ~0u}) {
    const uint32_t right = std::exchange(pd->handle, handle);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(pd.get(), memory.data(), 64, 0), nullptr) << handle;
    EXPECT_EQ(errno, ENOENT);
    expect_no_qp(wish());
    pd->handle = right;
  }
  for (const uint32_t handle : {other_mr->handle, 0u, ~0u}) {
    const uint32_t right = std::exchange(mr->handle, handle);
    EXPECT_EQ(ibv_dereg_mr(mr.get()), ENOENT) << handle;
    mr->handle = right;
  }
  const QpPtr qp = make_qp({});
  for (const uint32_t handle : {0u, 1u, 0xffffffu, ~0u}) {  // QPs 0 and 1 are the device's own
    const uint32_t right = std::exchange(qp->handle, handle);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp.get(), &attr, 0, &init), ENOENT) << handle;
    qp->handle = right;
  }
}

}  // namespace
}  // namespace rocemu::system_test
