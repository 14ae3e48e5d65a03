// Tests ibv_reg_mr(3) and ibv_reg_mr_iova(3): where a region begins for work requests.
#include <unistd.h>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

class RegMr : public ConnectedTest {
 protected:
  static uint64_t page() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }
  uint64_t offset_in_page(size_t index) { return reinterpret_cast<uint64_t>(slot(index)) % page(); }
  MrPtr reg(uint64_t iova, unsigned access = IBV_ACCESS_LOCAL_WRITE) {
    errno = 0;
    return MrPtr(ibv_reg_mr_iova(pd.get(), slot(3), kSlot, iova, access));
  }
  /// Writes 8 bytes to the region from a peer. Returns the status.
  ibv_wc_status write(uint32_t rkey, uint64_t address) {
    ibv_qp_attr attr{};
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    EXPECT_EQ(ibv_modify_qp(receiver.get(), &attr, IBV_QP_ACCESS_FLAGS), 0);
    ibv_sge local = sge(0, 8);
    ibv_send_wr wr{};
    wr.sg_list = &local;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {.remote_addr = address, .rkey = rkey};
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
    return poll_for(other_cq.get(), 1).at(0).status;
  }
};

// "ibv_reg_mr_iova is the same as the normal reg_mr, except that the user is allowed to specify the
// virtual base address of the MR when accessed through a lkey or rkey." Linux's ib_uverbs_reg_mr():
// `if ((cmd.start & ~PAGE_MASK) != (cmd.hca_va & ~PAGE_MASK)) return -EINVAL;`
TEST_F(RegMr, TheIovaHasThePageOffsetOfTheAddress) {
  const uint64_t offset = offset_in_page(3);
  EXPECT_NE(reg(offset), nullptr) << "the first page";
  EXPECT_NE(reg(64 * page() + offset), nullptr);
  for (const uint64_t wrong : {offset + 1, offset + page() / 2, page() + offset - 1}) {
    EXPECT_EQ(reg(wrong), nullptr) << wrong - offset;
    EXPECT_EQ(errno, EINVAL);
  }
}

// An optional access flag selects ibv_reg_mr_iova2().
TEST_F(RegMr, WithOptionalAccessToo) {
  constexpr unsigned kRelaxed = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
  const uint64_t offset = offset_in_page(3);
  EXPECT_NE(reg(page() + offset, kRelaxed), nullptr);
  EXPECT_EQ(reg(page() + offset + 8, kRelaxed), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// "IBV_ACCESS_ZERO_BASED: Use byte offset from beginning of MR to access this MR, instead of a
// pointer address". For ibv_reg_mr() libibverbs passes the address as the iova, so that any address
// is possible. The kernel compares the page offsets without regard to the access flags.
TEST_F(RegMr, AZeroBasedRegionCanHaveAnyAddress) {
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED;
  const MrPtr region(ibv_reg_mr(pd.get(), slot(3) + 40, 256, kAccess));
  ASSERT_NE(region, nullptr) << std::strerror(errno);
  std::memcpy(slot(0), "at zero", 8);
  EXPECT_EQ(write(region->rkey, 0), IBV_WC_SUCCESS);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(3) + 40), "at zero");
  errno = 0;
  EXPECT_EQ(ibv_reg_mr_iova(pd.get(), slot(3), 256, offset_in_page(3) + 40, kAccess), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// "The offset in the memory region is computed as 'addr + (iova - hca_va)'."
TEST_F(RegMr, TheRegionBeginsAtTheIova) {
  const uint64_t iova = 64 * page() + offset_in_page(3);
  const MrPtr region = reg(iova, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->addr, slot(3));
  std::memcpy(slot(0), "by iova", 8);
  EXPECT_EQ(write(region->rkey, iova + 16), IBV_WC_SUCCESS);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(3) + 16), "by iova");
}

}  // namespace
}  // namespace rocemu::system_test
