// Replacements of the C11 thread functions (threads.h). In glibc a mtx_t is a pthread_mutex_t and a
// cnd_t is a pthread_cond_t, but the C11 functions call those of pthreads inside the library, where
// they cannot be replaced.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <pthread.h>
#include <sched.h>
#include <threads.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

struct C11Start {
  thrd_start_t function;
  void* argument;
};

void* run_c11(void* given) {
  const C11Start start = *static_cast<C11Start*>(given);
  free(given);
  return reinterpret_cast<void*>(static_cast<intptr_t>(start.function(start.argument)));
}

int result_of(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    case EBUSY:
      return thrd_busy;
    default:
      return thrd_error;
  }
}

pthread_mutex_t* inside(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}
pthread_cond_t* inside(cnd_t* condition) {
  return reinterpret_cast<pthread_cond_t*>(condition);
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, thrd_create, (thrd_t * thread, thrd_start_t function, void* argument)) {
  auto* const start = static_cast<C11Start*>(malloc(sizeof(C11Start)));
  if (start == nullptr) return thrd_nomem;
  *start = {function, argument};
  const int error = pthread_create(thread, nullptr, run_c11, start);
  if (error != 0) free(start);
  return error == EAGAIN ? thrd_nomem : result_of(error);
}

ROCEMU_REPLACE(int, thrd_join, (thrd_t thread, int* result)) {
  void* value = nullptr;
  const int error = pthread_join(thread, &value);
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<intptr_t>(value));
  return result_of(error);
}

ROCEMU_REPLACE(int, thrd_sleep, (const timespec* time, timespec* rest)) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, time, rest);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

ROCEMU_REPLACE(void, thrd_yield, ()) {
  sched_yield();
}

ROCEMU_REPLACE(int, mtx_lock, (mtx_t * mutex)) {
  return result_of(pthread_mutex_lock(inside(mutex)));
}
ROCEMU_REPLACE(int, mtx_timedlock, (mtx_t * mutex, const timespec* time)) {
  return result_of(pthread_mutex_timedlock(inside(mutex), time));
}
ROCEMU_REPLACE(int, mtx_trylock, (mtx_t * mutex)) {
  return result_of(pthread_mutex_trylock(inside(mutex)));
}

ROCEMU_REPLACE(int, cnd_wait, (cnd_t * condition, mtx_t* mutex)) {
  return result_of(pthread_cond_wait(inside(condition), inside(mutex)));
}
ROCEMU_REPLACE(int, cnd_timedwait, (cnd_t * condition, mtx_t* mutex, const timespec* time)) {
  return result_of(pthread_cond_timedwait(inside(condition), inside(mutex), time));
}
ROCEMU_REPLACE(int, cnd_signal, (cnd_t * condition)) {
  return result_of(pthread_cond_signal(inside(condition)));
}
ROCEMU_REPLACE(int, cnd_broadcast, (cnd_t * condition)) {
  return result_of(pthread_cond_broadcast(inside(condition)));
}
