#include "verbs_provider/polling/empty_poll.h"

#include <algorithm>
#include <ctime>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/base/context.h"
#include "verbs_provider/polling/backlog.h"
#include "verbs_provider/polling/cpu_placement.h"
#include "verbs_provider/shim/system_call.h"

namespace rocemu::provider {
namespace {

constexpr uint32_t kPollsPerCheck = 1000;
constexpr uint32_t kFewSleeps = 200, kManySleeps = 10'000;
constexpr int64_t kLongYieldNs = 300'000;
constexpr timespec kMaxSleep{0, 100'000};
/// How long a poll waits awake: about as long as it takes to give the processor to somebody else.
constexpr int64_t kAwakeNs = 1'500;
/// Where others take turns with us a completion is nearly here when our turn comes: what it takes
/// to miss none by a little, and so all turns of a round.
constexpr int64_t kAwakeInTurnsNs = 300;

/// Since this thread last found a completion: the CQ in which it then found nothing, which is only
/// compared and may be gone, and how often that was another than before.
thread_local const Cq* last_empty = nullptr;
thread_local uint32_t other_cqs = 0;
/// Many programs have one CQ to send and one to receive.
constexpr uint32_t kFewCqs = 2;
/// More than the scheduler's tick: to set a timer that ends sooner is expensive on virtual
/// machines.
constexpr timespec kMaxAway{0, 5'000'000};
/// How long this thread's latest yield took.
thread_local int64_t latest_yield_ns = 0;
/// One that took less let nobody in.
constexpr int64_t kMinTurnNs = 1'000;
/// Where it took more, many want the processor, and nobody keeps it waiting.
constexpr int64_t kFewPartiesNs = 10'000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void found(uint64_t completions) {
  other_cqs = 0;
  cpu_placement().finds(completions);
}

/// With one processor nothing can come while we have it. As it was at the first look: a process
/// that is confined later only waits in vain.
bool has_one_processor() {
  static std::atomic<int> count{0};
  if (count.load(std::memory_order_relaxed) == 0) {
    cpu_set_t allowed;
    const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
    count.store(known ? CPU_COUNT(&allowed) : 1, std::memory_order_relaxed);
  }
  return count.load(std::memory_order_relaxed) == 1;
}

}  // namespace

Look await_completion(Cq* cq) {
  uint64_t produced = cq->produced();
  if (produced != cq->consumed) {
    found(produced - cq->consumed);
    return {produced};
  }
  if (other_cqs > kFewCqs || latest_yield_ns > kFewPartiesNs) return {produced};
  if (cq->crowded.load(std::memory_order_relaxed) != 0) return {produced};
  const DoorbellWriter& doorbells = context_of(cq->verbs.cq.context)->parts.doorbells;
  if (doorbells.is_virtual()) return {produced};
  const int64_t begin = now_ns();
  CpuPlacement& place = cpu_placement();
  if (other_cqs == 0 && last_empty == cq) {  // which is all that it looks at
    const uint32_t completions = backlog().completions_to_await(begin);
    if (completions != 0 && place.may_sleep(begin)) return {produced, completions};
  }
  if (has_one_processor() || doorbells.shares_processor()) return {produced};
  if (place.begins(doorbells.is_beside_daemon(), begin)) leave_processor();
  const int64_t awake = latest_yield_ns < kMinTurnNs ? kAwakeNs : kAwakeInTurnsNs;
  int64_t now;
  do {
    relax();
    produced = cq->produced();
    now = now_ns();
  } while (produced == cq->consumed && now - begin < awake);
  place.ends(now);
  if (produced != cq->consumed) found(produced - cq->consumed);
  return {produced};
}

EmptyPoll::EmptyPoll(Cq* cq, const Look& look)
    : cq_(cq), seen_(static_cast<uint32_t>(cq->consumed)), polls_(++cq->empty_polls) {
  const uint32_t crowded = cq->crowded.load(std::memory_order_relaxed);
  if (last_empty != cq) ++other_cqs;
  last_empty = cq;
  if (crowded == 0 && look.to_sleep_for == 0) return;
  if (crowded != 0) cq->crowded.store(crowded - 1, std::memory_order_relaxed);
  is_away_ = crowded == 0;
  sleeps_on_ = &cq->ring->producer;
  cq->ring->wake_at.store(seen_ + (crowded != 0 ? 1 : look.to_sleep_for),
                          std::memory_order_relaxed);
  cq->ring->waiting.store(1, std::memory_order_seq_cst);
}

bool EmptyPoll::wait(ibv_context* context) {
  DoorbellWriter& doorbells = context_of(context)->parts.doorbells;
  if (!doorbells.wait_for_round(cq_)) {
    CpuPlacement& place = cpu_placement();
    if (!is_away_) {
      if (place.begins(doorbells.is_beside_daemon(), now_ns())) leave_processor();
    }
    sleeps_on_ != nullptr ? sleep() : yield();
    place.ends(now_ns());
  }
  if (polls_ % kPollsPerCheck != 0) return true;
  return !doorbells.is_daemon_gone();
}

/// A resize may unmap the ring meanwhile: the kernel then says EFAULT.
void EmptyPoll::sleep() const {
  system_call(SYS_futex, sleeps_on_, FUTEX_WAIT, seen_, is_away_ ? &kMaxAway : &kMaxSleep, nullptr,
              0);
}

void EmptyPoll::yield() {
  const int64_t before = now_ns();
  sched_yield();
  const int64_t took = now_ns() - before;
  latest_yield_ns = took;
  const uint32_t before_last = cq_->crowd.load(std::memory_order_relaxed);
  const uint32_t crowd =
      took < kLongYieldNs ? 0 : std::clamp(2 * before_last, kFewSleeps, kManySleeps);
  if (crowd == 0 && before_last == 0) return;
  cq_->crowd.store(crowd, std::memory_order_relaxed);
  cq_->crowded.store(crowd, std::memory_order_relaxed);
}

}  // namespace rocemu::provider
