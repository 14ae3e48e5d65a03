// Memory that a program provides by userfaultfd(2) when it is looked at. Nobody but that program
// may have to wait for it.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPage = 4096;
constexpr uint8_t kProvided = 0x5a;

/// One page for each use: nothing is there before it is provided.
class UserfaultfdTest : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    fault_fd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
    if (fault_fd_ < 0) GTEST_SKIP() << "userfaultfd(2): " << std::strerror(errno);
    uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
    ASSERT_EQ(ioctl(fault_fd_, UFFDIO_API, &api), 0);
    page_ = static_cast<uint8_t*>(
        mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(page_, MAP_FAILED);
    uffdio_register range{};
    range.range = {reinterpret_cast<uint64_t>(page_), kPage};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    ASSERT_EQ(ioctl(fault_fd_, UFFDIO_REGISTER, &range), 0);
    page_mr_.reset(ibv_reg_mr(pd.get(), page_, kPage, IBV_ACCESS_LOCAL_WRITE | kRemoteAccess));
    ASSERT_NE(page_mr_, nullptr) << std::strerror(errno);
    a_ = make_qp({});
    b_ = make_qp({});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(a_.get(), b_.get()));
  }
  void TearDown() override {
    if (fault_fd_ >= 0) close(fault_fd_);  // whoever still waits goes on
    a_.reset();
    b_.reset();
    page_mr_.reset();
    if (page_ != nullptr) munmap(page_, kPage);
  }

  void provide() {
    std::vector<uint8_t> bytes(kPage, kProvided);
    uffdio_copy copy{};
    copy.dst = reinterpret_cast<uint64_t>(page_);
    copy.src = reinterpret_cast<uint64_t>(bytes.data());
    copy.len = kPage;
    ASSERT_EQ(ioctl(fault_fd_, UFFDIO_COPY, &copy), 0) << std::strerror(errno);
  }

  /// What another user of the NIC asks for has its answer soon, for half a second.
  void expect_that_others_go_on() {
    ContextPtr other(ibv_open_device(context->device));
    ASSERT_NE(other, nullptr);
    auto longest = Clock::duration::zero();
    for (const auto end = Clock::now() + std::chrono::milliseconds(500); Clock::now() < end;) {
      const auto began = Clock::now();
      PdPtr one(ibv_alloc_pd(other.get()));
      ASSERT_NE(one, nullptr);
      longest = std::max(longest, Clock::now() - began);
    }
    EXPECT_LT(longest, std::chrono::milliseconds(100));
  }

  void expect_nothing_completed() {
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
  }

  ibv_sge page(uint32_t length = 1024) const {
    return {reinterpret_cast<uint64_t>(page_), length, page_mr_->lkey};
  }

  int fault_fd_ = -1;
  uint8_t* page_ = nullptr;
  MrPtr page_mr_;
  QpPtr a_, b_;
};

TEST_F(UserfaultfdTest, APayloadThatIsNotThereBlocksNobodyElseAndIsSentWhenItIs) {
  ASSERT_EQ(post_recv(b_.get(), 1), 0);
  ibv_send_wr wr = request(IBV_WR_SEND, 2);
  ibv_sge from = page();
  wr.sg_list = &from;
  ASSERT_EQ(post(a_.get(), wr), 0);
  expect_that_others_go_on();
  expect_nothing_completed();
  provide();
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

TEST_F(UserfaultfdTest, AReceiveBufferThatIsNotThereBlocksNobodyElseAndIsFilledWhenItIs) {
  ibv_sge to = page();
  ibv_recv_wr receive{};
  receive.sg_list = &to;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(b_.get(), &receive, &bad), 0);
  ASSERT_EQ(post(a_.get(), request(IBV_WR_SEND, 2)), 0);
  expect_that_others_go_on();
  expect_nothing_completed();
  provide();
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

TEST_F(UserfaultfdTest, RemoteAndLocalMemoryOfAReadMayComeLate) {
  for (const bool remote : {true, false}) {
    ibv_send_wr wr = request(IBV_WR_RDMA_READ, 2, 0, 16);
    ibv_sge local = page(16);
    if (!remote) wr.sg_list = &local;
    wr.wr.rdma = {
        remote ? reinterpret_cast<uint64_t>(page_) : reinterpret_cast<uint64_t>(memory.data()),
        remote ? page_mr_->rkey : remote_mr->rkey};
    ASSERT_EQ(madvise(page_, kPage, MADV_DONTNEED), 0);
    ASSERT_EQ(post(a_.get(), wr), 0);
    usleep(100'000);
    expect_nothing_completed();
    provide();
    EXPECT_EQ(next_status(), IBV_WC_SUCCESS) << remote;
  }
}

TEST_F(UserfaultfdTest, TheTargetOfAWriteAndOfAnAtomicMayComeLate) {
  ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 2, 0, 16);
  wr.wr.rdma = {reinterpret_cast<uint64_t>(page_), page_mr_->rkey};
  ASSERT_EQ(post(a_.get(), wr), 0);
  expect_that_others_go_on();
  expect_nothing_completed();
  provide();
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);

  ASSERT_EQ(madvise(page_, kPage, MADV_DONTNEED), 0);
  ibv_send_wr add = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 8);
  add.wr.atomic = {reinterpret_cast<uint64_t>(page_), 1, 0, page_mr_->rkey};
  ASSERT_EQ(post(a_.get(), add), 0);
  expect_that_others_go_on();
  expect_nothing_completed();
  provide();
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(page_[0], kProvided + 1);
}

}  // namespace
}  // namespace rocemu::system_test
