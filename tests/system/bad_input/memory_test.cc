// Tests addresses at which there is no memory, or not the memory that a request needs. Only the
// request fails: the program and the daemon continue.
#include <sys/mman.h>

#include <memory>

#include "tests/support/page_size.h"
#include "tests/system/map_pages.h"
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

/// Three pages.
class Pages {
 public:
  Pages() : address_(map_pages(3 * kPageSize)) {}
  ~Pages() { munmap(address_, 3 * kPageSize); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  uint8_t* data() const { return address_; }
  uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(address_) + offset; }
  void unmap(size_t page) const { munmap(address_ + page * kPageSize, kPageSize); }
  void protect(int protection) const { mprotect(address_, 3 * kPageSize, protection); }

 private:
  uint8_t* address_;
};

class BadMemory : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    region.reset(ibv_reg_mr(pd.get(), pages.data(), 3 * kPageSize,
                            IBV_ACCESS_LOCAL_WRITE | kRemoteAccess | further_access()));
    ASSERT_NE(region, nullptr);
    sender = make_qp({});
    receiver = make_qp({});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(sender.get(), receiver.get()));
  }
  void TearDown() override {
    // After each test, the device must still serve other QPs.
    const QpPtr qp = make_qp({});
    ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
    ASSERT_EQ(post_recv(qp.get(), 71), 0);
    ASSERT_EQ(post_send(qp.get(), 72), 0);
    int good = 0;
    for (const ibv_wc& wc : poll_for(cq.get(), 2 + flushed)) good += wc.status == IBV_WC_SUCCESS;
    EXPECT_EQ(good, 2);
  }

  virtual unsigned further_access() const { return 0; }

  ibv_wc_status status_of(ibv_wr_opcode opcode, ibv_sge local, uint64_t remote = 0) {
    ibv_send_wr wr = request(opcode, 1);
    entry = local;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {.remote_addr = remote, .compare_add = 1, .swap = 0, .rkey = region->rkey};
    } else {
      wr.wr.rdma = {.remote_addr = remote, .rkey = region->rkey};
    }
    EXPECT_EQ(post(sender.get(), wr), 0);
    return next_status();
  }
  ibv_sge in_pages(size_t offset, uint32_t length) const {
    return {pages.at(offset), length, region->lkey};
  }

  Pages pages;
  MrPtr region;
  QpPtr sender, receiver;
  size_t flushed = 0;  // completions that the test has not polled
};

/// A region without IBV_ACCESS_ON_DEMAND is pinned and remains accessible for the NIC. With this
/// flag, the NIC uses what is mapped at the time of the access.
class BadMemoryOnDemand : public BadMemory {
  unsigned further_access() const override { return IBV_ACCESS_ON_DEMAND; }
};

TEST_F(BadMemory, NullIsNotInTheRegion) {
  EXPECT_EQ(status_of(IBV_WR_SEND, {0, 16, region->lkey}), IBV_WC_LOC_PROT_ERR);
}

TEST_F(BadMemory, TheRegionEndsAfterItsLastByte) {
  EXPECT_EQ(status_of(IBV_WR_RDMA_WRITE, in_pages(0, 16), pages.at(3 * kPageSize - 16)),
            IBV_WC_SUCCESS);
  EXPECT_EQ(status_of(IBV_WR_SEND, in_pages(3 * kPageSize - 15, 16)), IBV_WC_LOC_PROT_ERR);
}

TEST_F(BadMemory, TheRegionBeginsWithItsFirstByte) {
  EXPECT_EQ(status_of(IBV_WR_SEND, {pages.at(0) - 1, 16, region->lkey}), IBV_WC_LOC_PROT_ERR);
}

TEST_F(BadMemory, AReadOfOneByteTooManyIsARemoteAccessError) {
  EXPECT_EQ(status_of(IBV_WR_RDMA_READ, in_pages(0, 16), pages.at(3 * kPageSize - 15)),
            IBV_WC_REM_ACCESS_ERR);
}

TEST_F(BadMemory, AnAddressThatWrapsIsOutside) {
  EXPECT_EQ(status_of(IBV_WR_RDMA_WRITE, in_pages(0, 16), ~uint64_t{0} - 3), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(BadMemory, AnAtomicIsAlignedAtTheResponder) {
  EXPECT_EQ(status_of(IBV_WR_ATOMIC_FETCH_AND_ADD, in_pages(1, 8), pages.at(8)), IBV_WC_SUCCESS)
      << "where its answer goes may be anywhere";
  EXPECT_EQ(status_of(IBV_WR_ATOMIC_FETCH_AND_ADD, in_pages(0, 8), pages.at(12)),
            IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(BadMemoryOnDemand, WhatIsUnmappedCannotBeSent) {
  pages.unmap(1);
  EXPECT_EQ(status_of(IBV_WR_SEND, in_pages(kPageSize, 16)), IBV_WC_LOC_PROT_ERR);
}

TEST_F(BadMemoryOnDemand, AHoleIsMetWhereItBegins) {
  pages.unmap(1);
  EXPECT_EQ(status_of(IBV_WR_SEND, in_pages(kPageSize - 8, 16)), IBV_WC_LOC_PROT_ERR);
}

TEST_F(BadMemoryOnDemand, WhatIsUnmappedCannotBeReached) {
  pages.unmap(1);
  EXPECT_EQ(status_of(IBV_WR_RDMA_WRITE, sge(0, 16), pages.at(kPageSize)), IBV_WC_REM_OP_ERR);
}

TEST_F(BadMemoryOnDemand, ReadOnlyMemoryCanBeSentButNotReceivedInto) {
  pages.protect(PROT_READ);
  EXPECT_EQ(status_of(IBV_WR_RDMA_READ, sge(0, 16), pages.at(0)), IBV_WC_SUCCESS);
  ibv_sge place = in_pages(0, 16);
  ibv_recv_wr recv{};
  recv.wr_id = 9;
  recv.sg_list = &place;
  recv.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(receiver.get(), &recv, &bad), 0);
  ibv_send_wr wr = request(IBV_WR_SEND, 1);
  ASSERT_EQ(post(sender.get(), wr), 0);
  for (const ibv_wc& wc : poll_for(cq.get(), 2)) {
    EXPECT_EQ(wc.status, wc.wr_id == 9 ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR);
  }
}

TEST_F(BadMemoryOnDemand, TheAnswerOfAReadHasToFitIntoMemoryThatIsThere) {
  pages.unmap(2);
  EXPECT_EQ(status_of(IBV_WR_RDMA_READ, in_pages(2 * kPageSize, 16), pages.at(0)),
            IBV_WC_LOC_PROT_ERR);
}

}  // namespace
}  // namespace rocemu::system_test
