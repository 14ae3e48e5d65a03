// Tests ibv_reg_dmabuf_mr(3), sentence by sentence, with a file in memory in the place of a GPU's
// memory.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/support/page_size.h"
#include "tests/system/verbs_fixture.h"

// Included last, because the headers above mean GoogleTest's namespace when they say `testing`.
#include "testing/cpp/rocemu/device_memory.h"

namespace rocemu::system_test {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

class DmaBuf : public ConnectedTest {
 protected:
  MrPtr reg(uint64_t offset, size_t length, uint64_t iova, int access = kAccess) {
    return MrPtr(ibv_reg_dmabuf_mr(pd.get(), offset, length, iova, device.fd(), access));
  }
  int error_of(uint64_t offset, size_t length, uint64_t iova, int fd, int access = kAccess) {
    errno = 0;
    const MrPtr wrong(ibv_reg_dmabuf_mr(pd.get(), offset, length, iova, fd, access));
    return wrong == nullptr ? errno : 0;
  }
  char* bytes() { return static_cast<char*>(device.data()); }

  ibv_wc_status rdma(ibv_wr_opcode opcode, uint64_t remote, uint32_t rkey, uint32_t length) {
    ibv_qp_attr attr{};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    EXPECT_EQ(ibv_modify_qp(receiver.get(), &attr, IBV_QP_ACCESS_FLAGS), 0);
    ibv_sge local = sge(0, length);
    ibv_send_wr wr{};
    wr.sg_list = &local;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {.remote_addr = remote, .rkey = rkey};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
    return poll_for(other_cq.get(), 1).at(0).status;
  }

  rocemu::testing::DeviceMemory device{64 << 10};
};

// "The MR starts at offset of the dma-buf and its size is length." "iova specifies the virtual base
// address of the MR when accessed through a lkey or rkey."
TEST_F(DmaBuf, IsWrittenAndReadByThePeer) {
  const MrPtr region = reg(kPageSize + 8, 100, 0x7000'0000'0008);
  ASSERT_NE(region, nullptr) << std::strerror(errno);
  EXPECT_EQ(region->length, 100u);
  std::memcpy(slot(0), "0123456789", 10);
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, 0x7000'0000'0008 + 90, region->rkey, 10), IBV_WC_SUCCESS);
  EXPECT_EQ(std::string(bytes() + kPageSize + 98, 10), "0123456789");
  EXPECT_EQ(bytes()[kPageSize + 108], 0);
  std::memcpy(bytes() + kPageSize + 8, "device", 6);
  EXPECT_EQ(rdma(IBV_WR_RDMA_READ, 0x7000'0000'0008, region->rkey, 6), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(slot(0), "device", 6), 0);
}

TEST_F(DmaBuf, AnAccessBeyondItsLengthFails) {
  const MrPtr region = reg(0, 100, 0);
  ASSERT_NE(region, nullptr) << std::strerror(errno);
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, 91, region->rkey, 10), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(DmaBuf, IsReceivedInto) {
  const MrPtr region = reg(0, device.size(), 0);
  ASSERT_NE(region, nullptr) << std::strerror(errno);
  ibv_sge to{5000, 16, region->lkey};
  ibv_recv_wr wr{};
  wr.sg_list = &to;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(receiver.get(), &wr, &bad), 0);
  std::memcpy(slot(0), "0123456789abcdef", 16);
  ASSERT_EQ(post_send(sender.get(), 1), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::string(bytes() + 5000, 16), "0123456789abcdef");
}

TEST_F(DmaBuf, OutlivesItsDescriptor) {
  const int copy = dup(device.fd());
  const MrPtr region(ibv_reg_dmabuf_mr(pd.get(), 0, 100, 0, copy, kAccess));
  ASSERT_NE(region, nullptr) << std::strerror(errno);
  close(copy);
  slot(0)[0] = 77;
  EXPECT_EQ(rdma(IBV_WR_RDMA_WRITE, 0, region->rkey, 1), IBV_WC_SUCCESS);
  EXPECT_EQ(bytes()[0], 77);
}

// The iova "must have the same page offset as offset."
TEST_F(DmaBuf, OffsetAndIovaAgreeWithinTheirPages) {
  EXPECT_EQ(error_of(8, 100, 0, device.fd()), EINVAL);
  EXPECT_EQ(error_of(8, 100, kPageSize + 8, device.fd()), 0);
}

TEST_F(DmaBuf, IsWithinTheBuffer) {
  EXPECT_EQ(error_of(0, device.size(), 0, device.fd()), 0);
  EXPECT_EQ(error_of(0, device.size() + 1, 0, device.fd()), EINVAL);
  EXPECT_EQ(error_of(4096, device.size(), 4096, device.fd()), EINVAL);
  EXPECT_EQ(error_of(UINT64_MAX - 4095, 8192, 0, device.fd()), EINVAL);
  EXPECT_EQ(error_of(0, 0, 0, device.fd()), EINVAL);
}

// "only the following flags are supported: IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE,
// IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_RELAXED_ORDERING."
TEST_F(DmaBuf, TakesFewAccessFlags) {
  EXPECT_EQ(error_of(0, 100, 0, device.fd(), kAccess | IBV_ACCESS_REMOTE_ATOMIC), 0);
  EXPECT_EQ(error_of(0, 100, 0, device.fd(), kAccess | IBV_ACCESS_RELAXED_ORDERING), 0);
  for (const int flag :
       {IBV_ACCESS_MW_BIND, IBV_ACCESS_ZERO_BASED, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_HUGETLB}) {
    EXPECT_EQ(error_of(0, 100, 0, device.fd(), kAccess | flag), EINVAL) << flag;
  }
  EXPECT_EQ(error_of(0, 100, 0, device.fd(), IBV_ACCESS_REMOTE_WRITE), EINVAL);
}

TEST_F(DmaBuf, NeedsADescriptorOfMemory) {
  EXPECT_EQ(error_of(0, 100, 0, -1), EBADF);
  const int event = eventfd(0, EFD_CLOEXEC);
  EXPECT_EQ(error_of(0, 100, 0, event), EINVAL);
  close(event);
  int pipe[2];
  ASSERT_EQ(pipe2(pipe, O_CLOEXEC), 0);
  EXPECT_EQ(error_of(0, 100, 0, pipe[0]), EINVAL);
  close(pipe[0]);
  close(pipe[1]);
}

TEST_F(DmaBuf, StaysWhereItIs) {
  const MrPtr region = reg(0, 4096, 0);
  ASSERT_NE(region, nullptr);
  EXPECT_NE(ibv_rereg_mr(region.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, slot(0), 16, 0),
            0);
}

}  // namespace
}  // namespace rocemu::system_test
