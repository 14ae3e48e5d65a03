// Calls that start threads and wait for their end
#include <cerrno>
#include <cstdlib>
#include <new>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/preemption_points.h"
#include "verbs_provider/turns/signal_mask.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

using abi::ThreadSlot;

shim::Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> next_pthread_create(
    "pthread_create");
shim::Next<int(pthread_t, void**)> next_pthread_join("pthread_join");
shim::Next<int(pthread_t, void**)> next_pthread_tryjoin_np("pthread_tryjoin_np");
shim::Next<int(pthread_t, void**, const timespec*)> next_pthread_timedjoin_np(
    "pthread_timedjoin_np");
shim::Next<int(pthread_t, void**, clockid_t, const timespec*)> next_pthread_clockjoin_np(
    "pthread_clockjoin_np");

struct Start {
  void* (*function)(void*);
  void* argument;
  ThreadSlot* slot;
  uint64_t mask;  // of signals, of the thread that started this one
};

/// Returns whether a new thread inherited its mask, which is then that of block_signals().
/// Otherwise the attributes have a mask (pthread_attr_setsigmask_np(3)).
bool is_inherited(uint64_t mask, const Start& start) {
  return ((mask ^ (start.mask | deferrable_signals())) & ~internal_signals()) == 0;
}

/// Runs a new thread. Its signals are blocked until its first turn.
void* run(void* given) {
  const Start start = *static_cast<Start*>(given);
  const uint64_t mask = signal_mask();
  begin_thread(start.slot);
  free(given);  // during its turn: the library may map memory for the thread here
  if (is_inherited(mask, start)) set_signal_mask(start.mask);
  return start.function(start.argument);
}

/// Returns whether the thread takes turns and has not ended yet.
bool runs(pthread_t thread) {
  const auto pid = own_slot()->pid.load();
  const uint32_t count = table()->high_water.load();
  for (uint32_t i = 0; i < count && i < abi::TurnTable::kSlots; ++i) {
    const ThreadSlot& slot = table()->slots[i];
    const uint32_t state = slot.state.load();
    if (state == ThreadSlot::kFree || state == ThreadSlot::kGone) continue;
    if (slot.pid.load() == pid && slot.handle.load() == static_cast<uint64_t>(thread)) return true;
  }
  return false;
}

Call call_of(pthread_t thread) {
  return Call::of(SYS_futex, static_cast<uint64_t>(thread));
}

/// Waits for the thread's end. Returns 0, ETIMEDOUT or EDEADLK, or -1 if the daemon has ended.
int wait_for_end(pthread_t thread, int64_t deadline) {
  if (pthread_equal(thread, pthread_self()) != 0) return EDEADLK;
  for (;;) {
    const End end = wait(call_of(thread), deadline, [&] {
      pthread_testcancel();
      return !runs(thread);
    });
    if (end == End::kReady) return 0;
    if (end == End::kDeadline) return ETIMEDOUT;
    if (end == End::kLeft) return -1;
  }
}

/// Joins a thread that has had its last turn, although the kernel may not have ended it yet. At
/// this point the join is not a cancellation point.
int join_ended(pthread_t thread, void** result) {
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  own_slot()->asks.store(ThreadSlot::kWaitsShortly);
  const int error = next_pthread_join(thread, result);
  own_slot()->asks.store(ThreadSlot::kNothing);
  pthread_setcancelstate(state, nullptr);
  return error;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, pthread_create,
               (pthread_t * thread, const pthread_attr_t* attributes, void* (*function)(void*),
                void* argument)) {
  rocemu::abi::ThreadSlot* const slot = active() ? take_slot() : nullptr;
  auto* const start = slot != nullptr ? static_cast<Start*>(malloc(sizeof(Start))) : nullptr;
  if (start == nullptr) {
    free_slot(slot);
    return next_pthread_create(thread, attributes, function, argument);
  }
  slot->pid.store(own_slot()->pid.load());
  const uint64_t mask = block_signals();
  *start = {function, argument, slot, mask};
  const int error = next_pthread_create(thread, attributes, run, start);
  if (error == 0) slot->handle.store(static_cast<uint64_t>(*thread));
  set_signal_mask(mask);
  if (error != 0) {
    free_slot(slot);
    free(start);
    return error;
  }
  pass_preemption_point("pthread_create");
  return 0;
}

ROCEMU_REPLACE(int, pthread_join, (pthread_t thread, void** result)) {
  if (active()) {
    const int error = wait_for_end(thread, rocemu::abi::kNever);
    if (error > 0) return error;
    if (error == 0) return join_ended(thread, result);
  }
  return next_pthread_join(thread, result);
}

ROCEMU_REPLACE(int, pthread_tryjoin_np, (pthread_t thread, void** result)) {
  if (!active()) return next_pthread_tryjoin_np(thread, result);
  if (runs(thread)) {
    found_nothing(call_of(thread), static_cast<uint64_t>(thread));
    return EBUSY;
  }
  return join_ended(thread, result);
}

ROCEMU_REPLACE(int, pthread_timedjoin_np, (pthread_t thread, void** result, const timespec* time)) {
  if (active() && time != nullptr) {
    const int error = wait_for_end(thread, deadline_at(CLOCK_REALTIME, *time));
    if (error > 0) return error;
    if (error == 0) return join_ended(thread, result);
  }
  return next_pthread_timedjoin_np(thread, result, time);
}

ROCEMU_REPLACE(int, pthread_clockjoin_np,
               (pthread_t thread, void** result, clockid_t clock, const timespec* time)) {
  if (active() && time != nullptr) {
    const int error = wait_for_end(thread, deadline_at(clock, *time));
    if (error > 0) return error;
    if (error == 0) return join_ended(thread, result);
  }
  return next_pthread_clockjoin_np(thread, result, clock, time);
}
