#include "verbs_provider/polling/empty_poll.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/context/backlog.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/hooks/provider_calls.h"
#include "verbs_provider/polling/copy_job.h"
#include "verbs_provider/polling/cq_rotation.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

constexpr uint32_t kPollsPerCheck = 1000;
/// The number of empty polls that a program makes before it sleeps until an event: one before and
/// one after it requests the event. These polls do not sleep, since the program then sleeps by
/// itself, possibly until other events as well.
constexpr uint32_t kPollsBeforeBlocking = 2;
/// The longest sleep, in nanoseconds, of a thread that is far ahead; the daemon wakes it much
/// earlier. It is longer than the scheduler's tick, since on virtual machines it is expensive to
/// set a timer that ends sooner.
constexpr int64_t kMaxAwayNs = 5'000'000;

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns the mode, which is read from the environment only once. `known` is 1 + the mode, or 0 if
/// the mode was not read yet.
PollMode poll_mode() {
  static std::atomic<int> known{0};
  int chosen = known.load(std::memory_order_relaxed);
  if (chosen == 0) {
    PollMode mode;
    const char* text = getenv("ROCEMU_POLL");
    const bool is_valid = parse_poll_mode(text, &mode);
    chosen = 1 + static_cast<int>(mode);
    if (known.exchange(chosen) == 0 && !is_valid) {
      fprintf(stderr,
              *text == '\0'
                  ? "rocemu: ROCEMU_POLL is empty%s; unset it, or set it to adaptive, yield or "
                    "spin; using adaptive\n"
                  : "rocemu: ROCEMU_POLL=%s is not adaptive, yield or spin; using adaptive\n",
              text);
    }
  }
  return static_cast<PollMode>(chosen - 1);
}

thread_local CqRotation rotation;

}  // namespace

WaitPolicy& wait_policy() {
  thread_local WaitPolicy policy;
  return policy;
}

void note_poll(Cq* cq) {
  cq->sharing.polls(&rotation);
  rotation.polls(cq);
}

void note_completion(const Cq* cq) {
  rotation.finds(cq);
  wait_policy().finds();
  if (rocemu_turns_found != nullptr) rocemu_turns_found();
}

EmptyPoll::EmptyPoll(Cq* cq)
    : cq_(cq), seen_(static_cast<uint32_t>(cq->consumed)), polls_(++cq->empty_polls) {
  const DoorbellWriter& doorbells = context_of(cq->verbs.cq.context)->parts.doorbells;
  if (doorbells.is_virtual()) return;
  WaitPolicy& policy = wait_policy();
  const bool is_shared = cq->sharing.is_shared();
  policy.finds_nothing(doorbells.pollers_per_processor(), is_shared);
  if (!rotation.waits(cq)) return;
  if (poll_mode() == PollMode::kAdaptive && cq->sharing.is_visit()) return;
  const bool one_cq = rotation.is_of_one();
  const int64_t longest =
      one_cq ? kBudgetConstants.most_ns : kWaitConstants.longest_sleep_of_many_ns;
  way_ = policy.next(poll_mode(), longest);
  if (poll_mode() != PollMode::kAdaptive) return;
  blocks_soon_ = cq->notifies.load(std::memory_order_relaxed) && polls_ <= kPollsBeforeBlocking;
  if (way_ == WaitPolicy::Way::kSleep) {
    // If other threads poll the CQ, too, the thread does not sleep. Its budget is charged as if it
    // had slept, so it polls without waiting for some time.
    if (is_shared) policy.slept(longest);
    if (blocks_soon_ || is_shared) {
      way_ = WaitPolicy::Way::kPollOn;
    } else {
      sleep_until(seen_ + 1, longest);
    }
  } else if (one_cq && !blocks_soon_ && !is_shared && policy.may_sleep(longest)) {
    // A thread that copies messages for the daemon is not ahead of it.
    const int64_t now = now_ns();
    const uint32_t completions = has_copied_lately(now) ? 0 : backlog().completions_to_await(now);
    if (completions != 0) sleep_while_watched(seen_ + completions);
  }
}

/// Makes wait() sleep until the CQ has this number of completions, or no more arrive. Without a
/// daemon that would notice the latter, the thread waits as it would otherwise.
void EmptyPoll::sleep_while_watched(uint32_t completions) {
  const WaitPolicy::Way otherwise = way_;
  sleep_until(completions, kMaxAwayNs);
  if (way_ != WaitPolicy::Way::kSleep || cq_->ring->watched.load(std::memory_order_seq_cst) != 0)
    return;
  cq_->ring->waiting.store(0, std::memory_order_relaxed);
  way_ = otherwise;
}

void EmptyPoll::sleep_until(uint32_t completions, int64_t at_most_ns) {
  abi::CqRing& ring = *cq_->ring;
  ring.wake_at.store(completions, std::memory_order_relaxed);
  ring.waiting.store(1, std::memory_order_seq_cst);
  const bool is_late = ring.producer.load(std::memory_order_seq_cst) != seen_;
  way_ = is_late ? WaitPolicy::Way::kPollOn : WaitPolicy::Way::kSleep;
  sleeps_on_ = &ring.waiting;
  at_most_ns_ = at_most_ns;
}

bool EmptyPoll::wait(ibv_context* context) {
  Context::Parts& parts = context_of(context)->parts;
  DoorbellWriter& doorbells = parts.doorbells;
  if (make_copy(parts)) {
    note_copy(now_ns());
    return true;
  }
  if (!doorbells.wait_for_round(cq_)) {
    switch (way_) {
      case WaitPolicy::Way::kPollOn:
        if (poll_mode() == PollMode::kSpin) relax();
        break;
      case WaitPolicy::Way::kGiveWay: {
        const int64_t before = now_ns();
        doorbells.give_way();
        wait_policy().gave_way(now_ns() - before, blocks_soon_ ? WaitPolicy::Then::kBlocks
                                                               : WaitPolicy::Then::kPollsOn);
        break;
      }
      case WaitPolicy::Way::kSleep: {
        const int64_t before = now_ns();
        sleep();
        wait_policy().slept(now_ns() - before);
        break;
      }
    }
  }
  if (polls_ % kPollsPerCheck != 0) return true;
  return !doorbells.is_daemon_gone();
}

/// Sleeps until the daemon stores 0 in `waiting`. A resize may unmap the ring in the meantime; the
/// kernel then returns EFAULT. An empty ibv_poll_cq(3) is not a failure, so it does not change
/// errno.
void EmptyPoll::sleep() const {
  const int saved = errno;
  const timespec at_most{0, at_most_ns_};
  system_call(SYS_futex, sleeps_on_, FUTEX_WAIT, 1, &at_most, nullptr, 0);
  errno = saved;
}

}  // namespace rocemu::provider
