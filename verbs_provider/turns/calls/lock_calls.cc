// Replaces the calls of mutexes, read-write locks, spin locks and semaphores: a thread takes the
// lock without waiting, or tries again in its next turn. Waiting threads get the lock in the order
// of their arrival (lock_queue.h).
#include <cerrno>
#include <ctime>

#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/lock_queue.h"
#include "verbs_provider/turns/preemption_points.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<int(pthread_mutex_t*)> next_mutex_lock("pthread_mutex_lock");
shim::Next<int(pthread_mutex_t*)> next_mutex_trylock("pthread_mutex_trylock");
shim::Next<int(pthread_mutex_t*, const timespec*)> next_mutex_timedlock("pthread_mutex_timedlock");
shim::Next<int(pthread_mutex_t*, clockid_t, const timespec*)> next_mutex_clocklock(
    "pthread_mutex_clocklock");
using RwLockCall = int(pthread_rwlock_t*);
using TimedRwLockCall = int(pthread_rwlock_t*, const timespec*);
shim::Next<RwLockCall> next_rdlock("pthread_rwlock_rdlock");
shim::Next<RwLockCall> next_tryrdlock("pthread_rwlock_tryrdlock");
shim::Next<RwLockCall> next_wrlock("pthread_rwlock_wrlock");
shim::Next<RwLockCall> next_trywrlock("pthread_rwlock_trywrlock");
shim::Next<TimedRwLockCall> next_timedrdlock("pthread_rwlock_timedrdlock");
shim::Next<TimedRwLockCall> next_timedwrlock("pthread_rwlock_timedwrlock");
shim::Next<int(pthread_spinlock_t*)> next_spin_lock("pthread_spin_lock");
shim::Next<int(pthread_spinlock_t*)> next_spin_trylock("pthread_spin_trylock");
shim::Next<int(pthread_mutex_t*)> next_mutex_unlock("pthread_mutex_unlock");
shim::Next<RwLockCall> next_rwlock_unlock("pthread_rwlock_unlock");
shim::Next<int(pthread_spinlock_t*)> next_spin_unlock("pthread_spin_unlock");
shim::Next<int(sem_t*)> next_sem_post("sem_post");
shim::Next<int(sem_t*)> next_sem_wait("sem_wait");
shim::Next<int(sem_t*)> next_sem_trywait("sem_trywait");
shim::Next<int(sem_t*, const timespec*)> next_sem_timedwait("sem_timedwait");
shim::Next<int(sem_t*, clockid_t, const timespec*)> next_sem_clockwait("sem_clockwait");

Call call_of(const volatile void* object) {
  return Call::of(SYS_futex, const_cast<const void*>(object));
}

/// Calls `attempt` in each turn until its result is not EBUSY. Returns this result, or -1 if the
/// daemon has ended.
template <class Try>
int take(const volatile void* lock, int64_t deadline, Try attempt) {
  const Looks looks = looks_of_turn();
  // While nothing happens, a thread that polls under a lock keeps the lock for as many polls as the
  // daemon granted it, instead of passing the lock on in each turn.
  if (looks.are_as_before && may_look_on()) {
    const int result = attempt();
    if (result != EBUSY) return result;
  }
  const LockTicket ticket(lock);
  const uint32_t polls = looks.pattern != 0 ? uint32_t{abi::ThreadSlot::kPolls} : 0;
  uint32_t more = looks.are_as_before ? 0 : uint32_t{abi::ThreadSlot::kProgressed};
  int64_t ready = polls != 0 ? time_after_looks() : 0;
  for (;;) {
    if (ticket.is_first()) {
      const int result = attempt();
      if (result != EBUSY) {
        go_on_after(looks);
        return result;
      }
    }
    if (now_ns() >= deadline) {
      progressed();
      return ETIMEDOUT;
    }
    if (give(call_of(lock), deadline, polls | more, ready) == End::kLeft) return -1;
    more = 0;
    ready = 0;
  }
}

#ifdef __GLIBC__
bool is_own(const pthread_mutex_t* mutex) {
  return mutex->__data.__owner == static_cast<int>(kernel(SYS_gettid));
}

int kind_of(const pthread_mutex_t* mutex) {
  return mutex->__data.__kind & 3;
}

/// Returns whether the caller already has the lock for writing.
bool is_own(const pthread_rwlock_t* lock) {
  return lock->__data.__cur_writer == static_cast<int>(kernel(SYS_gettid));
}
#else
/// Returns whether the caller owns the mutex. In musl, _m_lock has the owner
/// (src/internal/pthread_impl.h), except for a mutex of the normal kind.
bool is_own(const pthread_mutex_t* mutex) {
  constexpr int kOwner = 0x3fffffff;
  return (mutex->__u.__vi[1] & kOwner) == static_cast<int>(kernel(SYS_gettid));
}

/// Returns the kind of the mutex, _m_type.
int kind_of(const pthread_mutex_t* mutex) {
  return mutex->__u.__i[0] & 3;
}

/// Returns false, since musl does not store the owner of a rwlock: a thread that locks it twice
/// waits forever.
bool is_own(const pthread_rwlock_t*) {
  return false;
}
#endif

int take_mutex(pthread_mutex_t* mutex, int64_t deadline) {
  // The owner of a recursive mutex can lock it again even if others wait for it.
  if (!somebody_waits_for(mutex) || is_own(mutex)) {
    const int result = next_mutex_trylock(mutex);
    if (result != EBUSY) return result;
    // POSIX requires EDEADLK if the caller already owns a mutex of the error-checking kind.
    if (kind_of(mutex) == PTHREAD_MUTEX_ERRORCHECK && is_own(mutex)) return EDEADLK;
  }
  return take(mutex, deadline, [&] { return next_mutex_trylock(mutex); });
}

template <class Try>
int take_rwlock(pthread_rwlock_t* lock, int64_t deadline, Try attempt) {
  const int result = attempt();
  if (result != EBUSY) return result;
  if (is_own(lock)) return EDEADLK;
  return take(lock, deadline, attempt);
}

/// Takes the lock for writing. Writers wait in a queue. A reader does not wait behind a waiting
/// writer, which is the default policy of glibc, PTHREAD_RWLOCK_PREFER_READER_NP.
int take_to_write(pthread_rwlock_t* lock, int64_t deadline) {
  const auto attempt = [&] { return next_trywrlock(lock); };
  if (somebody_waits_for(lock) && !is_own(lock)) return take(lock, deadline, attempt);
  return take_rwlock(lock, deadline, attempt);
}

int take_spin_lock(pthread_spinlock_t* lock) {
  const auto attempt = [&] { return next_spin_trylock(lock); };
  if (!somebody_waits_for(const_cast<const int*>(lock))) {
    const int result = attempt();
    if (result != EBUSY) return result;
  }
  return take(lock, abi::kNever, attempt);
}

/// Takes the semaphore. Returns the result of sem_wait(), which is 0, or -1 with errno; or 1 if the
/// daemon has ended.
int take_semaphore(sem_t* semaphore, int64_t deadline) {
  const LockTicket ticket(semaphore);
  const End end = wait(call_of(semaphore), deadline, [&] {
    pthread_testcancel();
    return ticket.is_first() && next_sem_trywait(semaphore) == 0;
  });
  switch (end) {
    case End::kReady:
      return 0;
    case End::kDeadline:
      errno = ETIMEDOUT;
      return -1;
    case End::kInterrupted:
      errno = EINTR;
      return -1;
    case End::kLeft:
      break;
  }
  return 1;
}

/// Notes that the thread has ended `call`, after which it may lose its turn. Returns `result`.
int at_preemption_point(const char* call, int result) {
  pass_preemption_point(call);
  return result;
}

void tell_if_busy(int result, const volatile void* lock) {
  if (result == EBUSY) found_nothing(call_of(lock), reinterpret_cast<uint64_t>(lock));
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, pthread_mutex_lock, (pthread_mutex_t * mutex)) {
  if (active()) {
    begin_call("pthread_mutex_lock");
    const int result = take_mutex(mutex, rocemu::abi::kNever);
    if (result >= 0) return at_preemption_point("pthread_mutex_lock", result);
  }
  return next_mutex_lock(mutex);
}
ROCEMU_REPLACE(int, pthread_mutex_trylock, (pthread_mutex_t * mutex)) {
  const int result = next_mutex_trylock(mutex);
  tell_if_busy(result, mutex);
  return result;
}
ROCEMU_REPLACE(int, pthread_mutex_timedlock, (pthread_mutex_t * mutex, const timespec* time)) {
  if (time != nullptr && is_valid(*time) && active()) {
    begin_call("pthread_mutex_timedlock");
    const int result = take_mutex(mutex, deadline_at(CLOCK_REALTIME, *time));
    if (result >= 0) return at_preemption_point("pthread_mutex_timedlock", result);
  }
  return next_mutex_timedlock(mutex, time);
}
ROCEMU_REPLACE(int, pthread_mutex_clocklock,
               (pthread_mutex_t * mutex, clockid_t clock, const timespec* time)) {
  if (time != nullptr && is_valid(*time) && active()) {
    begin_call("pthread_mutex_clocklock");
    const int result = take_mutex(mutex, deadline_at(clock, *time));
    if (result >= 0) return at_preemption_point("pthread_mutex_clocklock", result);
  }
  return next_mutex_clocklock(mutex, clock, time);
}

ROCEMU_REPLACE(int, pthread_mutex_unlock, (pthread_mutex_t * mutex)) {
  begin_call("pthread_mutex_unlock");
  return at_preemption_point("pthread_mutex_unlock", next_mutex_unlock(mutex));
}

ROCEMU_REPLACE(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock)) {
  if (active()) {
    begin_call("pthread_rwlock_rdlock");
    const int result = take_rwlock(lock, rocemu::abi::kNever, [&] { return next_tryrdlock(lock); });
    if (result >= 0) return at_preemption_point("pthread_rwlock_rdlock", result);
  }
  return next_rdlock(lock);
}
ROCEMU_REPLACE(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock)) {
  if (active()) {
    begin_call("pthread_rwlock_wrlock");
    const int result = take_to_write(lock, rocemu::abi::kNever);
    if (result >= 0) return at_preemption_point("pthread_rwlock_wrlock", result);
  }
  return next_wrlock(lock);
}
ROCEMU_REPLACE(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const timespec* time)) {
  if (time != nullptr && is_valid(*time) && active()) {
    begin_call("pthread_rwlock_timedrdlock");
    const int result =
        take_rwlock(lock, deadline_at(CLOCK_REALTIME, *time), [&] { return next_tryrdlock(lock); });
    if (result >= 0) return at_preemption_point("pthread_rwlock_timedrdlock", result);
  }
  return next_timedrdlock(lock, time);
}
ROCEMU_REPLACE(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const timespec* time)) {
  if (time != nullptr && is_valid(*time) && active()) {
    begin_call("pthread_rwlock_timedwrlock");
    const int result = take_to_write(lock, deadline_at(CLOCK_REALTIME, *time));
    if (result >= 0) return at_preemption_point("pthread_rwlock_timedwrlock", result);
  }
  return next_timedwrlock(lock, time);
}
ROCEMU_REPLACE(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock)) {
  const int result = next_tryrdlock(lock);
  tell_if_busy(result, lock);
  return result;
}
ROCEMU_REPLACE(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock)) {
  const int result = next_trywrlock(lock);
  tell_if_busy(result, lock);
  return result;
}

ROCEMU_REPLACE(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock)) {
  begin_call("pthread_rwlock_unlock");
  return at_preemption_point("pthread_rwlock_unlock", next_rwlock_unlock(lock));
}

ROCEMU_REPLACE(int, pthread_spin_lock, (pthread_spinlock_t * lock)) {
  if (active()) {
    begin_call("pthread_spin_lock");
    const int result = take_spin_lock(lock);
    if (result >= 0) return at_preemption_point("pthread_spin_lock", result);
  }
  return next_spin_lock(lock);
}
ROCEMU_REPLACE(int, pthread_spin_trylock, (pthread_spinlock_t * lock)) {
  const int result = next_spin_trylock(lock);
  tell_if_busy(result, lock);
  return result;
}
ROCEMU_REPLACE(int, pthread_spin_unlock, (pthread_spinlock_t * lock)) {
  begin_call("pthread_spin_unlock");
  return at_preemption_point("pthread_spin_unlock", next_spin_unlock(lock));
}

ROCEMU_REPLACE(int, sem_post, (sem_t * semaphore)) {
  begin_call("sem_post");
  return at_preemption_point("sem_post", next_sem_post(semaphore));
}
ROCEMU_REPLACE(int, sem_wait, (sem_t * semaphore)) {
  if (active()) {
    begin_call("sem_wait");
    const int result = take_semaphore(semaphore, rocemu::abi::kNever);
    if (result <= 0) return at_preemption_point("sem_wait", result);
  }
  return next_sem_wait(semaphore);
}
ROCEMU_REPLACE(int, sem_timedwait, (sem_t * semaphore, const timespec* time)) {
  if (is_valid(*time) && active()) {
    begin_call("sem_timedwait");
    const int result = take_semaphore(semaphore, deadline_at(CLOCK_REALTIME, *time));
    if (result <= 0) return at_preemption_point("sem_timedwait", result);
  }
  return next_sem_timedwait(semaphore, time);
}
ROCEMU_REPLACE(int, sem_clockwait, (sem_t * semaphore, clockid_t clock, const timespec* time)) {
  if (is_valid(*time) && active()) {
    begin_call("sem_clockwait");
    const int result = take_semaphore(semaphore, deadline_at(clock, *time));
    if (result <= 0) return at_preemption_point("sem_clockwait", result);
  }
  return next_sem_clockwait(semaphore, clock, time);
}
ROCEMU_REPLACE(int, sem_trywait, (sem_t * semaphore)) {
  const int result = next_sem_trywait(semaphore);
  if (result != 0 && errno == EAGAIN)
    found_nothing(call_of(semaphore), reinterpret_cast<uint64_t>(semaphore));
  return result;
}
