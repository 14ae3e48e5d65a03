#include "verbs_provider/context/doorbell.h"

#include <cerrno>
#include <ctime>

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/base/poll_key_set.h"
#include "verbs_provider/context/backlog.h"
#include "verbs_provider/hooks/provider_calls.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

/// The number of yields after which a loop that waits for the daemon checks whether the daemon
/// still exists.
constexpr uint32_t kYieldsPerCheck = 1000;

/// Returns the processor in the ring's format: counted from 1, or 0 if it is unknown.
uint32_t processor() {
  return static_cast<uint32_t>(sched_getcpu() + 1);
}

}  // namespace

void DoorbellWriter::attach(abi::DoorbellRing* ring, int wake_fd, int connection) {
  ring_ = ring;
  wake_fd_ = wake_fd;
  connection_ = connection;
}

int DoorbellWriter::ring(abi::DoorbellKind kind, uint32_t object, uint64_t value) {
  if (kind == abi::DoorbellKind::kSend) backlog().sends();
  if (rocemu_turns_acts != nullptr) rocemu_turns_acts();
  const Guard guard(mutex_);
  const uint32_t producer = ring_->producer.load(std::memory_order_relaxed);
  if (!wait_for_space(producer)) return EIO;
  ring_->entries[producer % abi::kDoorbellEntries] = {kind, object, value};
  ring_->client_processor.store(processor(), std::memory_order_relaxed);
  // This store is sequentially consistent, like the following load of daemon_sleeping, for the
  // reason given at DoorbellRing. (Fences would do the same, but ThreadSanitizer does not support
  // fences.)
  ring_->producer.store(producer + 1, std::memory_order_seq_cst);
  wake_if_sleeping();
  return 0;
}

void DoorbellWriter::wake_if_sleeping() {
  if (ring_->daemon_sleeping.load(std::memory_order_seq_cst) == 0) return;
  const uint64_t one = 1;
  // A direct system call is used, because the shim may replace write(), which is also a
  // cancellation point. EAGAIN means that the daemon is already awake.
  const int saved = errno;
  system_call(SYS_write, wake_fd_, &one, sizeof(one));
  errno = saved;
}

bool DoorbellWriter::wait_for_space(uint32_t producer) {
  for (uint32_t yields = 0;; ++yields) {
    const uint32_t used = producer - ring_->consumer.load(std::memory_order_acquire);
    if (used < abi::kDoorbellEntries) return !gone_.load(std::memory_order_relaxed);
    wake_if_sleeping();
    if (!wait_for_round(ring_)) give_way();
    if (yields % kYieldsPerCheck == kYieldsPerCheck - 1 && is_daemon_gone()) return false;
  }
}

bool DoorbellWriter::wait_for_round(const void* key) {
  if (!is_virtual()) return false;
  if (rocemu_turns_found_nothing != nullptr && rocemu_turns_found_nothing(key)) return true;
  // The places that this thread polled without success in the round `empty->round`. The numbers of
  // rounds are common to all contexts. The stored number was read before the latest poll, so that
  // anything that arrived after that poll belongs to another round.
  PollKeySet* const empty = PollKeySet::of_this_thread();
  const uint32_t now = ring_->round.load(std::memory_order_seq_cst);
  if (empty != nullptr && !(empty->round == now && empty->contains(key))) {
    if (empty->round != now) empty->clear();
    empty->round = now;
    if (empty->add(key)) return true;  // without memory, as if it had been polled before
  }
  // The wait is bounded, since the round no longer changes after the daemon has ended.
  constexpr timespec kLongest{1, 0};
  const int saved = errno;
  ring_->waiting_for_round.fetch_add(1, std::memory_order_seq_cst);
  system_call(SYS_futex, &ring_->round, FUTEX_WAIT, now, &kLongest, nullptr, 0);
  ring_->waiting_for_round.fetch_sub(1, std::memory_order_relaxed);
  errno = saved;
  if (empty != nullptr) empty->clear();
  return true;
}

void DoorbellWriter::give_way() {
  ring_->giving_way.fetch_add(1, std::memory_order_relaxed);
  sched_yield();
  ring_->giving_way.fetch_sub(1, std::memory_order_relaxed);
}

bool DoorbellWriter::is_daemon_gone() {
  if (gone_.load(std::memory_order_relaxed)) return true;
  const int saved = errno;
  pollfd entry{connection_, 0, 0};  // POLLHUP and POLLERR are always reported
  const timespec now{};
  // A direct system call is used, because poll() is a cancellation point, and the lock may be held.
  const bool gone = system_call(SYS_ppoll, &entry, 1, &now, nullptr, 0) > 0;
  errno = saved;
  if (gone) gone_.store(true, std::memory_order_relaxed);
  return gone;
}

}  // namespace rocemu::provider
