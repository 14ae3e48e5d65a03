#include "verbs_provider/turns/thread_timer.h"

#include <climits>
#include <cstdlib>
#include <new>

#include <pthread.h>
#include <sys/syscall.h>

#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {

struct ThreadTimer {
  sigevent event;
  pthread_attr_t attributes;  // of the threads that it starts
  int64_t deadline_ns = abi::kNever;
  int64_t interval_ns = 0;
  uint32_t changes = 0;
  bool is_deleted = false;
};

namespace {

/// An expiration, given to the thread that is started for it.
struct Expiration {
  void (*function)(sigval);
  sigval value;
};

void* notify(void* given) {
  const Expiration expiration = *static_cast<Expiration*>(given);
  free(given);
  // timer_create(2) requires that threads start with all signals unblocked.
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  expiration.function(expiration.value);
  return nullptr;
}

/// Starts a thread for an expiration. If this is not possible, the expiration is lost, as in the C
/// library.
void expire(const ThreadTimer& timer) {
  auto* const expiration = static_cast<Expiration*>(malloc(sizeof(Expiration)));
  if (expiration == nullptr) return;
  *expiration = {timer.event.sigev_notify_function, timer.event.sigev_value};
  pthread_t thread;
  if (pthread_create(&thread, &timer.attributes, notify, expiration) != 0) free(expiration);
}

void* wait_for_expirations(void* given) {
  auto* const timer = static_cast<ThreadTimer*>(given);
  while (!timer->is_deleted) {
    const uint32_t changes = timer->changes;
    const End end = wait(
        Call::of(SYS_nanosleep), timer->deadline_ns, [&] { return timer->changes != changes; }, 0,
        Cancel::kMayNot);
    if (end == End::kLeft) break;
    if (end != End::kDeadline) continue;
    timer->deadline_ns =
        timer->interval_ns == 0 ? abi::kNever : timer->deadline_ns + timer->interval_ns;
    expire(*timer);
  }
  pthread_attr_destroy(&timer->attributes);
  free(timer);
  return nullptr;
}

/// Copies the program's attributes that the C library respects, for a detached thread.
void choose_attributes(const sigevent& event, pthread_attr_t* attributes) {
  pthread_attr_init(attributes);
  pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
  const auto* const given = static_cast<const pthread_attr_t*>(event.sigev_notify_attributes);
  if (given == nullptr) return;
  size_t size = 0;
  if (pthread_attr_getstacksize(given, &size) == 0) pthread_attr_setstacksize(attributes, size);
  if (pthread_attr_getguardsize(given, &size) == 0) pthread_attr_setguardsize(attributes, size);
}

}  // namespace

ThreadTimer* make_thread_timer(const sigevent& event) {
  void* const memory = malloc(sizeof(ThreadTimer));
  if (memory == nullptr) return nullptr;
  auto* const timer = new (memory) ThreadTimer{.event = event, .attributes = {}};
  choose_attributes(event, &timer->attributes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;  // the waiting thread handles no signal of the program
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, wait_for_expirations, timer);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == 0) return timer;
  pthread_attr_destroy(&timer->attributes);
  free(timer);
  return nullptr;
}

void set_thread_timer(ThreadTimer* timer, int64_t deadline_ns, int64_t interval_ns) {
  timer->deadline_ns = deadline_ns;
  timer->interval_ns = interval_ns;
  ++timer->changes;
}

void delete_thread_timer(ThreadTimer* timer) {
  timer->is_deleted = true;
  ++timer->changes;
}

}  // namespace rocemu::turns
