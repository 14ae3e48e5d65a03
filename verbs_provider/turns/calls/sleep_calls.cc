// Calls that sleep or yield
#include <cerrno>
#include <ctime>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<int(const timespec*, timespec*)> next_nanosleep("nanosleep");
shim::Next<int(clockid_t, int, const timespec*, timespec*)> next_clock_nanosleep("clock_nanosleep");
shim::Next<int(useconds_t)> next_usleep("usleep");
shim::Next<unsigned(unsigned)> next_sleep("sleep");
shim::Next<int()> next_sched_yield("sched_yield");

/// Returns true when the deadline has passed. Returns false if a signal handler ran before, with
/// the remaining time in `left`, or if the daemon has ended, with `gone` set.
bool sleep_until(int64_t deadline, int64_t* left, bool* gone) {
  const Call call = Call::of(SYS_nanosleep);
  End end = End::kReady;
  // Even a short sleep returns the turn once, so that other threads run.
  bool gave = false;
  end = wait(call, deadline, [&] {
    const bool was = gave;
    gave = true;
    return was && now_ns() >= deadline;
  });
  if (end == End::kDeadline && !gave) end = End::kReady;
  *left = deadline - now_ns();
  *gone = end == End::kLeft;
  return end == End::kReady || end == End::kDeadline;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, nanosleep, (const timespec* time, timespec* rest)) {
  if (!active()) return next_nanosleep(time, rest);
  if (!is_valid(*time)) {
    errno = EINVAL;
    return -1;
  }
  int64_t left = 0;
  bool gone = false;
  if (sleep_until(deadline_of(time), &left, &gone)) return 0;
  if (gone) return next_nanosleep(time, rest);
  if (rest != nullptr) *rest = timespec_of(left > 0 ? left : 0);
  errno = EINTR;
  return -1;
}

ROCEMU_REPLACE(int, clock_nanosleep,
               (clockid_t clock, int flags, const timespec* time, timespec* rest)) {
  if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || !active())
    return next_clock_nanosleep(clock, flags, time, rest);
  if (!is_valid(*time)) return EINVAL;
  const bool is_absolute = (flags & TIMER_ABSTIME) != 0;
  int64_t left = 0;
  bool gone = false;
  if (sleep_until(is_absolute ? deadline_at(clock, *time) : deadline_of(time), &left, &gone))
    return 0;
  if (gone) return next_clock_nanosleep(clock, flags, time, rest);
  if (!is_absolute && rest != nullptr) *rest = timespec_of(left > 0 ? left : 0);
  return EINTR;
}

ROCEMU_REPLACE(int, usleep, (useconds_t time)) {
  if (!active()) return next_usleep(time);
  int64_t left = 0;
  bool gone = false;
  if (sleep_until(deadline_after(int64_t{time} * 1000), &left, &gone)) return 0;
  if (gone) return next_usleep(time);
  errno = EINTR;
  return -1;
}

ROCEMU_REPLACE(unsigned, sleep, (unsigned seconds)) {
  if (!active()) return next_sleep(seconds);
  int64_t left = 0;
  bool gone = false;
  if (sleep_until(deadline_after(int64_t{seconds} * kBillion), &left, &gone)) return 0;
  if (gone) return next_sleep(seconds);
  return static_cast<unsigned>((left + kBillion / 2) / kBillion);
}

/// Counts as a poll: a thread that yields repeatedly waits for another thread.
ROCEMU_REPLACE(int, sched_yield, ()) {
  if (!active()) return next_sched_yield();
  const Call call = Call::of(SYS_sched_yield);
  const auto place = reinterpret_cast<uint64_t>(__builtin_return_address(0));
  yield(call, place);
  return 0;
}
ROCEMU_REPLACE(int, pthread_yield, ()) {
  return rocemu_shim_sched_yield();
}
