// Tests device memory: ibv_alloc_dm(3), sentence by sentence.
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

using DmPtr = std::unique_ptr<ibv_dm, Destroyer<ibv_dm, ibv_free_dm>>;

constexpr unsigned kAccess =
    IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

class DeviceMemory : public ConnectedTest {
 protected:
  DmPtr alloc(size_t length, uint32_t log_align = 0) {
    ibv_alloc_dm_attr attr{.length = length, .log_align_req = log_align, .comp_mask = 0};
    return DmPtr(ibv_alloc_dm(context.get(), &attr));
  }

  int error_of(ibv_alloc_dm_attr attr) {
    errno = 0;
    const DmPtr dm(ibv_alloc_dm(context.get(), &attr));
    return dm == nullptr ? errno : 0;
  }

  uint64_t max_size() {
    ibv_device_attr_ex attr{};
    EXPECT_EQ(ibv_query_device_ex(context.get(), nullptr, &attr), 0);
    return attr.max_dm_size;
  }
};

// "allocates a device memory buffer"; "The output dm contains the handle".
TEST_F(DeviceMemory, IsLimitedToTheSizeOfTheDevicesMemory) {
  ASSERT_GT(max_size(), 0u);
  const DmPtr dm = alloc(1000);
  ASSERT_NE(dm, nullptr) << std::strerror(errno);
  EXPECT_EQ(dm->context, context.get());
  EXPECT_EQ(dm->comp_mask, unsigned{IBV_DM_MASK_HANDLE});
}

// "ibv_alloc_dm() may fail if device has no more free device memory left, where the maximum amount
// of allocated memory is provided by the max_dm_size attribute".
TEST_F(DeviceMemory, EndsWhereTheDeviceSaysAndIsGivenBack) {
  DmPtr all = alloc(max_size());
  ASSERT_NE(all, nullptr) << std::strerror(errno);
  EXPECT_EQ(error_of({.length = 1, .log_align_req = 0, .comp_mask = 0}), ENOMEM);
  all.reset();
  EXPECT_EQ(error_of({.length = 1, .log_align_req = 0, .comp_mask = 0}), 0);
  EXPECT_NE(error_of({.length = max_size() + 1, .log_align_req = 0, .comp_mask = 0}), 0);
}

TEST_F(DeviceMemory, BadAttributesAreRefused) {
  EXPECT_EQ(error_of({.length = 0, .log_align_req = 0, .comp_mask = 0}), EINVAL);
  EXPECT_EQ(error_of({.length = 8, .log_align_req = 63, .comp_mask = 0}), EINVAL);
  EXPECT_EQ(error_of({.length = 8, .log_align_req = 0, .comp_mask = 1}), EOPNOTSUPP);
}

// "In order to perform a write/read memory access to an allocated device memory, a user could use
// the ibv_memcpy_to_dm and ibv_memcpy_from_dm calls". "dm_offset is the byte offset from the
// beginning of the allocated device memory buffer".
TEST_F(DeviceMemory, KeepsTheDataThatIsCopiedToIt) {
  const DmPtr dm = alloc(100);
  const char text[16] = "device memory";
  char back[sizeof(text)] = {};
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 52, text, sizeof(text)), 0);
  EXPECT_EQ(ibv_memcpy_from_dm(back, dm.get(), 52, sizeof(text)), 0);
  EXPECT_STREQ(back, text);
}

// ibv_memcpy_to_dm(3): "returns 0 on success or the failure reason value on failure"
TEST_F(DeviceMemory, CopiesStayWithinItAndAreOfWords) {
  const DmPtr dm = alloc(100);
  char buffer[104] = {};
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 0, buffer, 100), 0);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 100, buffer, 0), 0);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 0, buffer, 104), EINVAL);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), 96, buffer, 8), EINVAL);
  EXPECT_EQ(ibv_memcpy_to_dm(dm.get(), ~uint64_t{3}, buffer, 4), EINVAL);
  EXPECT_EQ(ibv_memcpy_from_dm(buffer, dm.get(), 104, 0), EINVAL);
  EXPECT_EQ(ibv_memcpy_from_dm(buffer, dm.get(), 52, SIZE_MAX - 3), EINVAL);
  EXPECT_EQ(ibv_memcpy_from_dm(buffer, dm.get(), 3, 4), EINVAL);
  EXPECT_EQ(ibv_memcpy_from_dm(buffer, dm.get(), 4, 3), EINVAL);
}

// "user must set the IBV_ACCESS_ZERO_BASED flag": then addresses are offsets in the device memory.
TEST_F(DeviceMemory, IsRegisteredFromZero) {
  const DmPtr dm = alloc(200);
  const MrPtr dm_mr(ibv_reg_dm_mr(pd.get(), dm.get(), 100, 50, kAccess));
  ASSERT_NE(dm_mr, nullptr) << std::strerror(errno);
  EXPECT_EQ(dm_mr->length, 50u);
  EXPECT_EQ(dm_mr->pd, pd.get());
  std::memcpy(slot(0), "0123456789", 10);
  ibv_sge to{40, 10, dm_mr->lkey};  // the last ten bytes
  ibv_recv_wr wr{};
  wr.sg_list = &to;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(receiver.get(), &wr, &bad), 0);
  ASSERT_EQ(post_send(sender.get(), 1, IBV_SEND_SIGNALED, 10), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  char got[13] = {};
  ASSERT_EQ(ibv_memcpy_from_dm(got, dm.get(), 140, 12), 0);
  EXPECT_STREQ(got, "0123456789");
}

TEST_F(DeviceMemory, IsReachedByThePeer) {
  ibv_qp_attr attr{};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  ASSERT_EQ(ibv_modify_qp(receiver.get(), &attr, IBV_QP_ACCESS_FLAGS), 0);
  const DmPtr dm = alloc(64);
  const MrPtr dm_mr(ibv_reg_dm_mr(pd.get(), dm.get(), 0, 64, kAccess));
  ASSERT_NE(dm_mr, nullptr);
  slot(0)[0] = 99;
  ibv_sge from = sge(0, 1);
  ibv_send_wr wr{};
  wr.sg_list = &from;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {.remote_addr = 63, .rkey = dm_mr->rkey};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  uint8_t got[4] = {};
  ASSERT_EQ(ibv_memcpy_from_dm(got, dm.get(), 60, 4), 0);
  EXPECT_EQ(got[3], 99);
  wr.wr.rdma.remote_addr = 64;
  ASSERT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
  EXPECT_EQ(poll_for(other_cq.get(), 1).at(0).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(DeviceMemory, RegistrationsStayWithinItAndAreZeroBased) {
  const DmPtr dm = alloc(100);
  const auto error = [&](uint64_t offset, size_t length, unsigned access) {
    errno = 0;
    const MrPtr dm_mr(ibv_reg_dm_mr(pd.get(), dm.get(), offset, length, access));
    return dm_mr == nullptr ? errno : 0;
  };
  EXPECT_EQ(error(0, 100, kAccess), 0);
  EXPECT_EQ(error(99, 1, kAccess), 0);
  EXPECT_EQ(error(0, 101, kAccess), EINVAL);
  EXPECT_EQ(error(99, 2, kAccess), EINVAL);
  EXPECT_EQ(error(~uint64_t{0}, 2, kAccess), EINVAL);
  EXPECT_EQ(error(0, 100, IBV_ACCESS_LOCAL_WRITE), EINVAL);
  EXPECT_EQ(error(0, 100, kAccess | IBV_ACCESS_ON_DEMAND), EINVAL);
}

// "ibv_free_dm() may fail if any other resources (such as an MR) is still associated with the DM
// being freed."
TEST_F(DeviceMemory, CannotBeFreedWhileItIsRegistered) {
  const DmPtr dm = alloc(100);
  MrPtr dm_mr(ibv_reg_dm_mr(pd.get(), dm.get(), 0, 100, kAccess));
  ASSERT_NE(dm_mr, nullptr);
  EXPECT_EQ(ibv_free_dm(dm.get()), EBUSY);
  dm_mr.reset();
}

// ibv_rereg_mr(3) cannot move device memory, but it can change the access rights.
TEST_F(DeviceMemory, CannotBeMovedByReregistration) {
  const DmPtr dm = alloc(100);
  const MrPtr dm_mr(ibv_reg_dm_mr(pd.get(), dm.get(), 0, 100, kAccess));
  EXPECT_EQ(ibv_rereg_mr(dm_mr.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, slot(0), 8, 0),
            IBV_REREG_MR_ERR_CMD);
  EXPECT_EQ(ibv_rereg_mr(dm_mr.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                         IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE),
            0);
}

// ibv_import_dm(3) fails, since the memory exists only in this process.
TEST_F(DeviceMemory, CannotBeImported) {
  const DmPtr dm = alloc(100);
  EXPECT_EQ(ibv_import_dm(context.get(), dm->handle), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace rocemu::system_test
