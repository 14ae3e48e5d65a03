// Tests memory with a page that is only provided when it is accessed: by the program itself
// (userfaultfd(2)), or by a file system in user space. Only the program with this page may have to
// wait for it.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/system/memory/late_page.h"
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPage = LatePage::kSize;
constexpr uint8_t kProvided = LatePage::kProvided;

struct Provider {
  const char* name;
  MakeLatePage make;

  friend void PrintTo(const Provider& provider, std::ostream* to) { *to << provider.name; }
};

/// A page for each test, whose content does not exist until it is provided.
class LatePageTest : public TransportTest, public testing::WithParamInterface<Provider> {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    std::string why;
    late_ = GetParam().make(&why);
    if (late_ == nullptr) GTEST_SKIP() << why;
    page_ = late_->data();
    page_mr_.reset(ibv_reg_mr(pd.get(), page_, kPage, IBV_ACCESS_LOCAL_WRITE | kRemoteAccess));
    ASSERT_NE(page_mr_, nullptr) << std::strerror(errno);
    a_ = make_qp({});
    b_ = make_qp({});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(a_.get(), b_.get()));
  }
  void TearDown() override {
    if (late_ != nullptr) late_->provide();
    a_.reset();
    b_.reset();
    page_mr_.reset();
  }

  void provide() { late_->provide(); }

  /// Checks for half a second that requests of another user of the NIC are answered quickly. On a
  /// busy machine, a few answers may be late.
  void expect_that_others_go_on() {
    ContextPtr other(ibv_open_device(context->device));
    ASSERT_NE(other, nullptr);
    std::vector<Clock::duration> times;
    for (const auto end = Clock::now() + std::chrono::milliseconds(500); Clock::now() < end;) {
      const auto began = Clock::now();
      PdPtr one(ibv_alloc_pd(other.get()));
      ASSERT_NE(one, nullptr);
      times.push_back(Clock::now() - began);
    }
    const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    EXPECT_LT(*middle, std::chrono::milliseconds(100));
  }

  void expect_nothing_completed() {
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
  }

  ibv_sge page(uint32_t length = 1024) const {
    return {reinterpret_cast<uint64_t>(page_), length, page_mr_->lkey};
  }

  std::unique_ptr<LatePage> late_;
  uint8_t* page_ = nullptr;
  MrPtr page_mr_;
  QpPtr a_, b_;
};

// The test also sends a short payload, which the provider would copy when it posts the message if
// the page were available.
TEST_P(LatePageTest, AMissingPayloadBlocksNoOtherQpAndIsSentLater) {
  for (const uint32_t length : {1024u, 64u}) {
    late_->take_away();
    ASSERT_EQ(post_recv(b_.get(), 1), 0);
    ibv_send_wr wr = request(IBV_WR_SEND, 2);
    ibv_sge from = page(length);
    wr.sg_list = &from;
    ASSERT_EQ(post(a_.get(), wr), 0);
    expect_that_others_go_on();
    expect_nothing_completed();
    provide();
    EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
    EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  }
}

TEST_P(LatePageTest, AMissingReceiveBufferBlocksNoOtherQpAndIsFilledLater) {
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

TEST_P(LatePageTest, RemoteAndLocalMemoryOfAReadMayComeLate) {
  for (const bool remote : {true, false}) {
    ibv_send_wr wr = request(IBV_WR_RDMA_READ, 2, 0, 16);
    ibv_sge local = page(16);
    if (!remote) wr.sg_list = &local;
    wr.wr.rdma = {
        remote ? reinterpret_cast<uint64_t>(page_) : reinterpret_cast<uint64_t>(memory.data()),
        remote ? page_mr_->rkey : remote_mr->rkey};
    late_->take_away();
    ASSERT_EQ(post(a_.get(), wr), 0);
    usleep(100'000);
    expect_nothing_completed();
    provide();
    EXPECT_EQ(next_status(), IBV_WC_SUCCESS) << remote;
  }
}

TEST_P(LatePageTest, TheTargetOfAWriteAndOfAnAtomicMayComeLate) {
  ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 2, 0, 16);
  wr.wr.rdma = {reinterpret_cast<uint64_t>(page_), page_mr_->rkey};
  ASSERT_EQ(post(a_.get(), wr), 0);
  expect_that_others_go_on();
  expect_nothing_completed();
  provide();
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);

  late_->take_away();
  ibv_send_wr add = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 8);
  add.wr.atomic = {reinterpret_cast<uint64_t>(page_), 1, 0, page_mr_->rkey};
  ASSERT_EQ(post(a_.get(), add), 0);
  expect_that_others_go_on();
  expect_nothing_completed();
  provide();
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(page_[0], kProvided + 1);
}

/// A program that works with the page until it is killed.
class DyingProgram : public LatePageTest {
 public:
  [[noreturn]] void run(int tell_ready) {
    SetUp();
    ibv_send_wr wr = request(IBV_WR_SEND, 1);
    ibv_sge from = page();
    wr.sg_list = &from;
    const char ready = !HasFatalFailure() && post(a_.get(), wr) == 0 ? 'y' : 'n';
    if (write(tell_ready, &ready, 1) == 1) pause();
    _exit(1);
  }

 private:
  void TestBody() override {}
};

TEST_P(LatePageTest, AProgramMayDieWhileItsPageIsWaitedFor) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t program = fork();
  ASSERT_GE(program, 0);
  if (program == 0) DyingProgram().run(ends[1]);
  close(ends[1]);
  char ready = 'n';
  EXPECT_EQ(read(ends[0], &ready, 1), 1);
  EXPECT_EQ(ready, 'y');
  close(ends[0]);
  usleep(50'000);  // gives the daemon time to wait for the page
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
  expect_that_others_go_on();
}

INSTANTIATE_TEST_SUITE_P(By, LatePageTest,
                         testing::Values(Provider{"Userfaultfd", make_userfaultfd_page},
                                         Provider{"Fuse", make_fuse_page}),
                         [](const auto& by) { return std::string(by.param.name); });

}  // namespace
}  // namespace rocemu::system_test
