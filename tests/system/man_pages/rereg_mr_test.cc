// Tests ibv_rereg_mr(3), sentence by sentence.
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
constexpr int kRemote = kLocal | IBV_ACCESS_REMOTE_WRITE;

class ReregMr : public ConnectedTest {
 protected:
  void SetUp() override {
    ConnectedTest::SetUp();
    ibv_qp_attr attr{};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    ASSERT_EQ(ibv_modify_qp(receiver.get(), &attr, IBV_QP_ACCESS_FLAGS), 0);
    target = register_slot(2, kRemote);
  }

  MrPtr register_slot(size_t index, unsigned access) {
    MrPtr registered(ibv_reg_mr(pd.get(), slot(index), kSlot, access));
    EXPECT_NE(registered, nullptr);
    return registered;
  }

  /// Writes the byte `value` to the first byte of slot `index` by RDMA WRITE, and returns the
  /// status.
  ibv_wc_status write(uint32_t rkey, size_t index, uint8_t value = 1) {
    slot(0)[0] = value;
    ibv_sge entry = sge(0, 1);
    ibv_send_wr wr{};
    wr.sg_list = &entry;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {.remote_addr = reinterpret_cast<uint64_t>(slot(index)), .rkey = rkey};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
    return poll_for(other_cq.get(), 1).at(0).status;
  }

  MrPtr target;
};

// "Change translation (location and length)": "addr represents the virtual address (user-space
// pointer) of the new MR, while length represents its length."
TEST_F(ReregMr, ChangesTheTranslation) {
  const uint32_t old_rkey = target->rkey;
  ASSERT_EQ(ibv_rereg_mr(target.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, slot(5), 100, 0),
            0);
  EXPECT_EQ(target->addr, slot(5));
  EXPECT_EQ(target->length, 100u);
  EXPECT_EQ(write(target->rkey, 5, 77), IBV_WC_SUCCESS);
  EXPECT_EQ(slot(5)[0], 77);
  EXPECT_EQ(write(old_rkey, 2), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ReregMr, AfterAChangeOfTranslationTheOldMemoryIsNotReached) {
  ASSERT_EQ(ibv_rereg_mr(target.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, slot(5), 100, 0),
            0);
  slot(2)[0] = 11;
  EXPECT_EQ(write(target->rkey, 2, 77), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(slot(2)[0], 11);
}

// "Change access flags": "either 0 or the bitwise OR of one or more of ibv_access_flags".
TEST_F(ReregMr, ChangesTheAccess) {
  const MrPtr local = register_slot(3, kLocal);
  ASSERT_EQ(ibv_rereg_mr(local.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kRemote), 0);
  EXPECT_EQ(write(local->rkey, 3, 5), IBV_WC_SUCCESS);
  EXPECT_EQ(slot(3)[0], 5);
  ASSERT_EQ(ibv_rereg_mr(local.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
  EXPECT_EQ(write(local->rkey, 3, 6), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(slot(3)[0], 5);
}

// "When IBV_REREG_MR_CHANGE_PD is used, pd represents the new PD this MR should be registered to."
TEST_F(ReregMr, ChangesThePd) {
  PdPtr other(ibv_alloc_pd(context.get()));
  ASSERT_NE(other, nullptr);
  ASSERT_EQ(ibv_rereg_mr(target.get(), IBV_REREG_MR_CHANGE_PD, other.get(), nullptr, 0, 0), 0);
  EXPECT_EQ(target->pd, other.get());
  EXPECT_EQ(ibv_dealloc_pd(other.get()), EBUSY) << "it is in use now";
  EXPECT_EQ(write(target->rkey, 2), IBV_WC_REM_ACCESS_ERR) << "QP and region are of different PDs";
  target.reset();
}

TEST_F(ReregMr, ChangesAllAtOnce) {
  PdPtr other(ibv_alloc_pd(context.get()));
  constexpr int kAll =
      IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  ASSERT_EQ(ibv_rereg_mr(target.get(), kAll, other.get(), slot(6), 10, kLocal), 0);
  EXPECT_EQ(target->pd, other.get());
  EXPECT_EQ(target->addr, slot(6));
  ASSERT_EQ(ibv_rereg_mr(target.get(), kAll, pd.get(), slot(7), 10, kRemote), 0);
  EXPECT_EQ(write(target->rkey, 7, 8), IBV_WC_SUCCESS);
  EXPECT_EQ(slot(7)[0], 8);
}

// "IBV_REREG_MR_ERR_INPUT - Old MR is valid, an input error was detected by libibverbs."
TEST_F(ReregMr, InputErrorsLeaveTheOldRegionValid) {
  const auto rereg = [&](int flags, void* address, size_t length, int access) {
    return ibv_rereg_mr(target.get(), flags, nullptr, address, length, access);
  };
  EXPECT_EQ(rereg(1 << 5, nullptr, 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, 10, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_TRANSLATION, slot(3), 0, 0), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_TRANSLATION, slot(3), 10, kLocal), IBV_REREG_MR_ERR_INPUT);
  EXPECT_EQ(write(target->rkey, 2), IBV_WC_SUCCESS);
}

// "IBV_REREG_MR_ERR_CMD - MR shouldn't be used, command error." (Here the region does not change.)
// "Even on a failure, the user still needs to call ibv_dereg_mr on this MR": the destructor of
// `target` does so.
TEST_F(ReregMr, ARefusalOfTheDeviceIsACommandError) {
  const auto rereg = [&](int flags, ibv_pd* new_pd, void* address, size_t length, int access) {
    return ibv_rereg_mr(target.get(), flags, new_pd, address, length, access);
  };
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, reinterpret_cast<void*>(8), 8, 0),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EFAULT) << "nothing is mapped there";
  // ibv_reg_mr(3): remote write requires local write.
  EXPECT_EQ(rereg(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rereg(0, nullptr, nullptr, 0, 0), IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(write(target->rkey, 2), IBV_WC_SUCCESS);
}

TEST_F(ReregMr, ThePdOfAnotherContextIsRefused) {
  const ContextPtr other_context = open_device();
  const PdPtr foreign(ibv_alloc_pd(other_context.get()));
  EXPECT_EQ(ibv_rereg_mr(target.get(), IBV_REREG_MR_CHANGE_PD, foreign.get(), nullptr, 0, 0),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(target->pd, pd.get());
}

}  // namespace
}  // namespace rocemu::system_test
