#include "verbs_provider/turns/preemption_points.h"

#include <cerrno>
#include <cstddef>

#include <sys/syscall.h>

#include "verbs_provider/hooks/provider_calls.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

using abi::ThreadSlot;

/// The latest action of a thread, which decides what the next preemption point does.
struct Latest {
  /// If true, the thread's latest call is an empty poll. Consecutive empty polls count as one call,
  /// since the scheduler counts them itself.
  bool is_empty_poll;
  bool was_stopped;  // and has made no call since
  int locks;         // our locks that it holds: others cannot continue if it stops
};
__attribute__((tls_model("initial-exec"))) thread_local Latest latest{};

void copy_name(char (&to)[ThreadSlot::kCallName], const char* name) {
  size_t i = 0;
  for (; name[i] != 0 && i + 1 < ThreadSlot::kCallName; ++i) to[i] = name[i];
  to[i] = 0;
}

/// Returns the turn until other threads have run and the NIC has acted.
void preempt(ThreadSlot* slot, const char* name) {
  const int saved = errno;
  copy_name(slot->call_before, name);
  give_between_calls();
  latest.was_stopped = true;
  errno = saved;
}

}  // namespace

void begin_call(const char* name) {
  if (!latest.was_stopped) return;
  latest.was_stopped = false;
  if (own_slot() != nullptr) copy_name(own_slot()->call_after, name);
}

void pass_preemption_point(const char* name) {
  ThreadSlot* const slot = own_slot();
  if (slot == nullptr) return;
  begin_call(name);
  const uint32_t calls = slot->calls.load(std::memory_order_relaxed);
  if (calls == 0 || latest.locks != 0 || !active()) return;
  slot->calls.store(calls - 1, std::memory_order_relaxed);
  if (calls == 1) preempt(slot, name);
}

}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(void, rocemu_turns_before_call, (const char* name)) {
  if (latest.is_empty_poll) {
    latest.is_empty_poll = false;
    pass_preemption_point("ibv_poll_cq");
  }
  begin_call(name);
}

ROCEMU_REPLACE(void, rocemu_turns_after_call, (const char* name)) {
  latest.is_empty_poll = false;
  pass_preemption_point(name);
}

ROCEMU_REPLACE(void, rocemu_turns_holds, (int change)) {
  latest.locks += change;
}

ROCEMU_REPLACE(bool, rocemu_turns_found_nothing, (const void* key)) {
  if (!active()) return false;
  begin_call("ibv_poll_cq");
  latest.is_empty_poll = true;
  // The poll is reported as a futex in the NIC's memory, by which reports recognize a completion
  // queue.
  found_nothing(Call::of(SYS_futex, key), reinterpret_cast<uint64_t>(key));
  return true;
}
