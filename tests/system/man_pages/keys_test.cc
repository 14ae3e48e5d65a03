// Tests ibv_reg_mr(3): "The R_Key field rkey is used by the remote process to perform Atomic and
// RDMA operations". The L_Key is refused, although on many NICs both keys are equal.
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class Keys : public ConnectedTest {
 protected:
  ibv_wc write_with(uint32_t key) {
    ibv_qp_attr attr{};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    EXPECT_EQ(ibv_modify_qp(receiver.get(), &attr, IBV_QP_ACCESS_FLAGS), 0);
    ibv_sge local = sge(0, 1);
    ibv_send_wr wr{};
    wr.wr_id = 4711;
    wr.sg_list = &local;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(slot(1)), .rkey = key};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
    return poll_for(other_cq.get(), 1).at(0);
  }
};

// docs/reference/vendor-errors.md, 22. tests/clients/test_two_runs.py reads the log of this test.
TEST_F(Keys, AnLKeyWhereAnRKeyBelongsIsNamed) {
  ASSERT_NE(mr->lkey, mr->rkey);
  const ibv_wc wc = write_with(mr->lkey);
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(wc.vendor_err, 22u);
}

// ibv_alloc_null_mr(3): "the MR is not exposed as an rkey". So the region has no R_Key that the
// program should have used instead.
TEST_F(Keys, TheLKeyOfARegionWithoutAnRKeyDoesNotGiveVendorError22) {
  const MrPtr null(ibv_alloc_null_mr(pd.get()));
  ASSERT_NE(null, nullptr);
  const ibv_wc wc = write_with(null->lkey);
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(wc.vendor_err, 10u);
}

TEST_F(Keys, AnotherWrongKeyHasAnotherVendorError) {
  const ibv_wc wc = write_with(mr->lkey ^ 1);
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(wc.vendor_err, 10u);
}

}  // namespace
}  // namespace rocemu::system_test
