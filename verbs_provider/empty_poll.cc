#include "verbs_provider/empty_poll.h"

#include <algorithm>
#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/context.h"

namespace rocemu::provider {
namespace {

constexpr uint32_t kPollsPerCheck = 1000;
constexpr uint32_t kFewSleeps = 200, kManySleeps = 10'000;
constexpr long kLongYieldNs = 300'000;
constexpr timespec kLongestSleep{0, 100'000};

}  // namespace

EmptyPoll::EmptyPoll(Cq* cq)
    : cq_(cq), seen_(static_cast<uint32_t>(cq->consumed)), polls_(++cq->empty_polls) {
  const uint32_t crowded = cq->crowded.load(std::memory_order_relaxed);
  if (crowded == 0) return;
  cq->crowded.store(crowded - 1, std::memory_order_relaxed);
  sleeps_on_ = &cq->ring->producer;
  cq->ring->waiting.store(1, std::memory_order_seq_cst);
}

bool EmptyPoll::wait(ibv_context* context) {
  if (context_of(context)->parts.doorbells.wait_for_round(cq_)) {
    // Others go on meanwhile.
  } else if (sleeps_on_ != nullptr) {
    sleep();
  } else {
    yield();
  }
  if (polls_ % kPollsPerCheck != 0) return true;
  return !context_of(context)->parts.doorbells.is_daemon_gone();
}

/// A resize may unmap the ring meanwhile: the kernel then says EFAULT.
void EmptyPoll::sleep() const {
  ::syscall(SYS_futex, sleeps_on_, FUTEX_WAIT, seen_, &kLongestSleep, nullptr, 0);
}

void EmptyPoll::yield() {
  timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  sched_yield();
  clock_gettime(CLOCK_MONOTONIC, &after);
  const long took = (after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec;
  const uint32_t before_last = cq_->crowd.load(std::memory_order_relaxed);
  const uint32_t crowd =
      took < kLongYieldNs ? 0 : std::clamp(2 * before_last, kFewSleeps, kManySleeps);
  if (crowd == 0 && before_last == 0) return;
  cq_->crowd.store(crowd, std::memory_order_relaxed);
  cq_->crowded.store(crowd, std::memory_order_relaxed);
}

}  // namespace rocemu::provider
