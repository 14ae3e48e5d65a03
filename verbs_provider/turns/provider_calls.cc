// What the provider and the shim report: polls, doorbells, requests, and the beginnings and ends of
// calls, between which a thread may lose its turn (`rocemu run --schedule N`).
#include "verbs_provider/hooks/provider_calls.h"

#include <cerrno>

#include <sys/syscall.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

using abi::ThreadSlot;

/// The thread's latest call is a poll that found nothing. Polls in a row are one call, since the
/// scheduler counts them by itself.
__attribute__((tls_model("initial-exec"))) thread_local bool is_after_empty_poll = false;

/// Gives the turn back, until others have run and the NIC has acted.
void preempt(ThreadSlot* slot) {
  const int saved = errno;
  slot->preempted_ns.store(has_looked() ? time_after_looks() : now_ns());
  slot->preemptions.fetch_add(1);
  give(Call::of(-1), abi::kNever, ThreadSlot::kProgressed | ThreadSlot::kPreempted);
  errno = saved;
}

/// Counts a place between two calls.
void pass_place() {
  ThreadSlot* const slot = own_slot();
  if (slot == nullptr) return;
  const uint32_t calls = slot->calls.load(std::memory_order_relaxed);
  if (calls == 0 || !active()) return;
  slot->calls.store(calls - 1, std::memory_order_relaxed);
  if (calls == 1) preempt(slot);
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(void, rocemu_turns_before_call, ()) {
  if (!is_after_empty_poll) return;
  is_after_empty_poll = false;
  pass_place();
}

ROCEMU_REPLACE(void, rocemu_turns_after_call, ()) {
  is_after_empty_poll = false;
  pass_place();
}

ROCEMU_REPLACE(bool, rocemu_turns_found_nothing, (const void* place)) {
  if (!active()) return false;
  is_after_empty_poll = true;
  // A futex in the memory of the NIC: so reports know that it is a completion queue.
  found_nothing(Call::of(SYS_futex, place), reinterpret_cast<uint64_t>(place));
  return true;
}

ROCEMU_REPLACE(void, rocemu_turns_asks, (bool waits)) {
  if (own_slot() == nullptr || !joined()) return;
  if (!waits) return wait_until_served(own_slot());
  acts();
  own_slot()->asks.store(ThreadSlot::kWaitsForReply);
  tell_daemon(own_slot());
}

ROCEMU_REPLACE(void, rocemu_turns_acts, ()) {
  if (own_slot() != nullptr) acts();
}

ROCEMU_REPLACE(void, rocemu_turns_found, ()) {
  if (own_slot() != nullptr) progressed();
}
