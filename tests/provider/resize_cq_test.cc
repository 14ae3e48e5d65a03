// Tests the requests of ibv_resize_cq(3) and ibv_modify_cq(3) to the daemon.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "tests/provider/fake_context.h"
#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/structs/cq.h"

namespace rocemu::provider {
namespace {

using test::Answer;

/// Memory of a CQ like that which the daemon creates; here it is a whole segment.
struct CqMemory {
  explicit CqMemory(uint32_t entries)
      : size(sizeof(abi::CqRing) + entries * sizeof(abi::Cqe)),
        fd(memfd_create("cq", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(size)), 0);
    ring =
        static_cast<abi::CqRing*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  }
  ~CqMemory() {
    munmap(ring, size);
    close(fd);
  }
  CqMemory(const CqMemory&) = delete;
  CqMemory& operator=(const CqMemory&) = delete;

  size_t size;
  int fd;
  abi::CqRing* ring;
};

class ResizeCq : public testing::Test {
 protected:
  ResizeCq()
      : context_([this](const abi::Request& request, const auto&) { return answer(request); }) {
    EXPECT_TRUE(context_.connected());
    cq_ = create_cq(context_.get(), 3, nullptr, 0);
    EXPECT_NE(cq_, nullptr);
    cq_->context = context_.get();  // as libibverbs does
    pthread_mutex_init(&cq_->mutex, nullptr);
    pthread_cond_init(&cq_->cond, nullptr);
    // orders the descriptor calls of this thread before those of the daemon's thread
    set_refusal(0);
  }
  ~ResizeCq() override { EXPECT_EQ(destroy_cq(cq_), 0); }

  // The daemon is a thread here. ThreadSanitizer does not see that the socket orders the two
  // threads, so a mutex does.
  void set_refusal(int error) {
    const std::scoped_lock lock(mutex_);
    refuse_ = error;
  }
  abi::Request last() {
    const std::scoped_lock lock(mutex_);
    return last_;
  }

  Answer answer(const abi::Request& request) {
    const std::scoped_lock lock(mutex_);
    if (request.op != abi::Op::kOpenSegment) last_ = request;
    Answer answer;
    if (refuse_ != 0) {
      answer.reply.error = refuse_;
    } else if (request.op == abi::Op::kCreateCq || request.op == abi::Op::kResizeCq) {
      const bool resizes = request.op == abi::Op::kResizeCq;
      const uint64_t size = resizes && too_small_ ? 64 : (resizes ? big_ : small_).size;
      answer.reply.body.create_cq = {5, resizes ? 5u : 3u, {0, size, resizes ? 1u : 0u, 0}};
    } else if (request.op == abi::Op::kOpenSegment) {
      const CqMemory& memory = request.body.open_segment.segment == 1 ? big_ : small_;
      answer.reply.body.open_segment.size = memory.size;
      answer.fds.push_back(dup(memory.fd));
    }
    return answer;
  }

  CqMemory small_{4}, big_{8};
  std::mutex mutex_;
  int refuse_ = 0;
  std::atomic<bool> too_small_{false};
  abi::Request last_{};
  FakeContext context_;
  ibv_cq* cq_;
};

TEST_F(ResizeCq, KeepsItsPositionInTheNewMemory) {
  Cq* cq = ours<Cq>(cq_);
  cq->consumed = 10;
  big_.ring->producer = 12;
  big_.ring->entries[10 % 8].wr_id = 77;  // a completion of a destroyed QP
  ASSERT_EQ(resize_cq(cq_, 5), 0);
  EXPECT_EQ(last().body.resize_cq.handle, 5u);
  EXPECT_EQ(last().body.resize_cq.capacity, 5u);
  EXPECT_EQ(cq_->cqe, 5);  // "The cqe member of cq will be updated to the actual size."
  ibv_wc wc;
  EXPECT_EQ(poll_cq(cq_, 1, &wc), 0);
  EXPECT_EQ(big_.ring->consumer, 12u) << "polled from the new ring";
  EXPECT_EQ(small_.ring->consumer, 0u);
}

TEST_F(ResizeCq, ThatIsRefusedLeavesTheCqAsItWas) {
  set_refusal(EINVAL);
  EXPECT_EQ(resize_cq(cq_, 5), EINVAL);
  set_refusal(0);
  EXPECT_EQ(cq_->cqe, 3);
  ibv_wc wc;
  EXPECT_EQ(poll_cq(cq_, 1, &wc), 0);
}

TEST_F(ResizeCq, OfNoEntriesIsRefused) {
  EXPECT_EQ(resize_cq(cq_, 0), EINVAL);
  EXPECT_EQ(resize_cq(cq_, -1), EINVAL);
  EXPECT_NE(last().op, abi::Op::kResizeCq);
}

// The daemon has moved the completions to memory that the provider cannot map.
TEST_F(ResizeCq, WhoseMemoryCannotBeUsedEndsTheCq) {
  too_small_ = true;
  EXPECT_EQ(resize_cq(cq_, 5), EIO);
  ibv_wc wc;
  EXPECT_LT(poll_cq(cq_, 1, &wc), 0);
}

TEST_F(ResizeCq, ModerationIsTheDaemonsBusiness) {
  ibv_modify_cq_attr attr{};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate = {.cq_count = 7, .cq_period = 9};
  EXPECT_EQ(modify_cq(cq_, &attr), 0);
  EXPECT_EQ(last().op, abi::Op::kModifyCq);
  EXPECT_EQ(last().body.modify_cq.count, 7u);
  EXPECT_EQ(last().body.modify_cq.period, 9u);
  attr.attr_mask = IBV_CQ_ATTR_RESERVED;
  EXPECT_EQ(modify_cq(cq_, &attr), EINVAL);
}

}  // namespace
}  // namespace rocemu::provider
