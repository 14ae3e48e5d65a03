// Condition variables and barriers. During the run no thread waits on the library's own objects: a
// signal is a gift to a waiting thread (gifts.h).
#include <cerrno>
#include <climits>
#include <ctime>

#include <pthread.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/gift_key.h"
#include "verbs_provider/turns/gifts.h"
#include "verbs_provider/turns/preemption_points.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<int(pthread_cond_t*, pthread_mutex_t*)> next_wait("pthread_cond_wait");
shim::Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> next_timedwait(
    "pthread_cond_timedwait");
shim::Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> next_clockwait(
    "pthread_cond_clockwait");
shim::Next<int(pthread_cond_t*)> next_signal("pthread_cond_signal");
shim::Next<int(pthread_cond_t*)> next_broadcast("pthread_cond_broadcast");
shim::Next<int(pthread_barrier_t*)> next_barrier_wait("pthread_barrier_wait");

#ifdef __GLIBC__
/// Returns whether processes share the condition. In glibc, the lowest bit of __wrefs shows this,
/// and the next bit shows the clock (nptl/pthread_cond_common.c).
bool is_shared(const pthread_cond_t* condition) {
  return (condition->__data.__wrefs & 1) != 0;
}
clockid_t clock_of(const pthread_cond_t* condition) {
  return (condition->__data.__wrefs & 2) != 0 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}
#else
/// Returns whether processes share the condition. In musl, _c_shared shows this, and _c_clock shows
/// the clock (src/internal/pthread_impl.h).
bool is_shared(const pthread_cond_t* condition) {
  return condition->__u.__p[0] != nullptr;
}
clockid_t clock_of(const pthread_cond_t* condition) {
  return condition->__u.__i[4];
}
#endif

uint64_t key_of(const pthread_cond_t* condition) {
  return is_shared(condition) ? key_among_processes(condition) : key_in_process(condition);
}

/// Ends the wait of a canceled thread: the thread owns the mutex again when its handlers run, and
/// takes no signal away from other threads (pthread_cond_wait(3p)).
void take_again(void* mutex) {
  end_expecting(true);
  pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex));
}

/// Waits for a signal of the condition. Returns 0 or ETIMEDOUT with the mutex locked again, or -1
/// if the daemon has ended.
int wait_for_signal(pthread_cond_t* condition, pthread_mutex_t* mutex, int64_t deadline) {
  const uint64_t key = key_of(condition);
  const Call call = Call::of(SYS_futex, condition);
  expect_gift(key);
  if (const int error = pthread_mutex_unlock(mutex); error != 0) {
    end_expecting(true);
    return error;
  }
  End end = End::kReady;
  pthread_cleanup_push(take_again, mutex);
  // Signal handlers do not end the wait (pthread_cond_wait(3p)).
  do {
    end = wait(call, deadline, [] { return has_gift(); });
  } while (end == End::kInterrupted);
  pthread_cleanup_pop(0);
  end_expecting(false);
  pthread_mutex_lock(mutex);
  if (end == End::kLeft) return -1;
  pthread_testcancel();
  return end == End::kDeadline ? ETIMEDOUT : 0;
}

struct Barrier {  // glibc, sysdeps/nptl/internaltypes.h
  unsigned in, round, count;
  int shared;
  unsigned out;
};

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex)) {
  if (active()) {
    const int result = wait_for_signal(condition, mutex, rocemu::abi::kNever);
    if (result >= 0) return result;
  }
  return next_wait(condition, mutex);
}
ROCEMU_REPLACE(int, pthread_cond_timedwait,
               (pthread_cond_t * condition, pthread_mutex_t* mutex, const timespec* time)) {
  if (is_valid(*time) && active()) {
    const int result = wait_for_signal(condition, mutex, deadline_at(clock_of(condition), *time));
    if (result >= 0) return result;
  }
  return next_timedwait(condition, mutex, time);
}
ROCEMU_REPLACE(int, pthread_cond_clockwait,
               (pthread_cond_t * condition, pthread_mutex_t* mutex, clockid_t clock,
                const timespec* time)) {
  if (is_valid(*time) && active()) {
    const int result = wait_for_signal(condition, mutex, deadline_at(clock, *time));
    if (result >= 0) return result;
  }
  return next_clockwait(condition, mutex, clock, time);
}

ROCEMU_REPLACE(int, pthread_cond_signal, (pthread_cond_t * condition)) {
  begin_call("pthread_cond_signal");
  if (own_slot() != nullptr && joined()) give_gifts(key_of(condition), 1);
  const int result = next_signal(condition);
  pass_preemption_point("pthread_cond_signal");
  return result;
}
ROCEMU_REPLACE(int, pthread_cond_broadcast, (pthread_cond_t * condition)) {
  begin_call("pthread_cond_broadcast");
  if (own_slot() != nullptr && joined()) give_gifts(key_of(condition), UINT_MAX);
  const int result = next_broadcast(condition);
  pass_preemption_point("pthread_cond_broadcast");
  return result;
}

ROCEMU_REPLACE(int, pthread_barrier_wait, (pthread_barrier_t * barrier)) {
  const auto* inside = reinterpret_cast<const Barrier*>(barrier);
  if (!active()) return next_barrier_wait(barrier);
  const uint64_t key = inside->shared != 0 ? key_among_processes(barrier) : key_in_process(barrier);
  if (count_waiting(key) + 1 >= inside->count) {
    give_gifts(key, UINT_MAX);
    progressed();
    return PTHREAD_BARRIER_SERIAL_THREAD;
  }
  expect_gift(key);
  End end;
  do {
    end = wait(
        Call::of(SYS_futex, barrier), rocemu::abi::kNever, [] { return has_gift(); }, 0,
        Cancel::kMayNot);
  } while (end == End::kInterrupted);
  end_expecting(false);
  return end == End::kLeft ? next_barrier_wait(barrier) : 0;
}
