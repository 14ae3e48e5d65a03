// Replaces the calls of timers: alarm(2), setitimer(2) for real time, and timerfd. The daemon has
// the timers, and sends the signal or increments the descriptor when their virtual time has come.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/held_files.h"
#include "verbs_provider/turns/random_files.h"
#include "verbs_provider/turns/thread_timer.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

#ifndef sigev_notify_thread_id  // Older versions of glibc have no name for it.
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace rocemu::turns {
namespace {

shim::Next<unsigned(unsigned)> next_alarm("alarm");
shim::Next<int(int, const itimerval*, itimerval*)> next_setitimer("setitimer");
shim::Next<int(int, itimerval*)> next_getitimer("getitimer");
shim::Next<int(clockid_t, sigevent*, timer_t*)> next_timer_create("timer_create");
shim::Next<int(timer_t, int, const itimerspec*, itimerspec*)> next_timer_settime("timer_settime");
shim::Next<int(timer_t, itimerspec*)> next_timer_gettime("timer_gettime");
shim::Next<int(timer_t)> next_timer_getoverrun("timer_getoverrun");
shim::Next<int(timer_t)> next_timer_delete("timer_delete");
shim::Next<int(int)> next_close("close");
shim::Next<int(int, int)> next_timerfd_create("timerfd_create");
shim::Next<int(int, int, const itimerspec*, itimerspec*)> next_timerfd_settime("timerfd_settime");
shim::Next<int(int, itimerspec*)> next_timerfd_gettime("timerfd_gettime");

struct Timer {
  int64_t deadline = abi::kNever;
  int64_t interval = 0;

  /// Returns the time until the next expiration, or 0 if there is none.
  int64_t left() const {
    if (deadline == abi::kNever) return 0;
    const int64_t now = now_ns();
    if (now < deadline) return deadline - now;
    return interval == 0 ? 0 : interval - (now - deadline) % interval;
  }
};

Timer the_alarm;  // not inherited by a child, which is detected by the pid
int32_t alarm_pid = 0;

/// Timer descriptors, by number. A duplicate of a descriptor can be waited for and read, but not
/// set.
constexpr int kMaxTimers = 1024;
struct Descriptor {
  uint32_t number;  // the daemon's number, from 1; 0: none
  clockid_t clock;
  Timer timer;
};
Descriptor descriptors[kMaxTimers];

/// Timers of timer_create(2). Their timer_t is kOurs and the index in this table.
constexpr uint64_t kOurs = uint64_t{0x726f63} << 40;
struct PosixTimer {
  uint32_t number;      // the daemon's number, from 1; 0: none
  ThreadTimer* thread;  // with SIGEV_THREAD, instead of the daemon's timer
  clockid_t clock;
  Timer timer;

  bool exists() const { return number != 0 || thread != nullptr; }
};
PosixTimer posix_timers[kMaxTimers];

PosixTimer* find(timer_t timer) {
  const auto index = reinterpret_cast<uint64_t>(timer) - kOurs;
  return index < kMaxTimers && posix_timers[index].exists() ? &posix_timers[index] : nullptr;
}

Descriptor* find(int fd) {
  return fd >= 0 && fd < kMaxTimers && descriptors[fd].number != 0 ? &descriptors[fd] : nullptr;
}

void tell(uint32_t number, const Timer& timer) {
  abi::TurnsRequest request{};
  request.magic = abi::kTurnsMagic;
  request.kind = abi::TurnsRequest::kSetTimer;
  request.timer = number;
  request.deadline_ns = timer.deadline;
  request.interval_ns = timer.interval;
  ask(request, -1);
}

void delete_timer(uint32_t number) {
  abi::TurnsRequest request{};
  request.magic = abi::kTurnsMagic;
  request.kind = abi::TurnsRequest::kDeleteTimer;
  request.timer = number;
  ask(request, -1);
}

/// Creates a timer with a descriptor or with a signal. Returns its number, or 0 if the daemon has
/// no free number.
uint32_t make_timer(int fd, int signal, pid_t tid, uint64_t value) {
  abi::TurnsRequest request{};
  request.magic = abi::kTurnsMagic;
  request.kind = abi::TurnsRequest::kMakeTimer;
  request.signal = signal;
  request.tid = tid;
  request.value = value;
  const int64_t number = ask(request, fd);
  return number > 0 ? static_cast<uint32_t>(number) : 0;
}

/// Creates the timer of timer_create(2), without setting its time. Returns false if that is not
/// possible.
bool make_posix_timer(const sigevent* event, timer_t id, PosixTimer* made) {
  const int how = event != nullptr ? event->sigev_notify : SIGEV_SIGNAL;
  if (how == SIGEV_THREAD) {
    made->thread = make_thread_timer(*event);
    return made->exists();
  }
  if (how != SIGEV_SIGNAL && how != SIGEV_NONE && how != SIGEV_THREAD_ID) return false;
  const int signal = how == SIGEV_NONE ? 0 : event != nullptr ? event->sigev_signo : SIGALRM;
  const pid_t thread = how == SIGEV_THREAD_ID ? event->sigev_notify_thread_id : 0;
  const auto value =
      reinterpret_cast<uint64_t>(event != nullptr ? event->sigev_value.sival_ptr : id);
  made->number = make_timer(-1, signal, thread, value);
  return made->exists();
}

Timer timer_of(const itimerspec& value, clockid_t clock, bool is_absolute) {
  const bool is_set = value.it_value.tv_sec != 0 || value.it_value.tv_nsec != 0;
  return {.deadline = !is_set       ? abi::kNever
                      : is_absolute ? deadline_at(clock, value.it_value)
                                    : deadline_of(&value.it_value),
          .interval = turns::ns_of(value.it_interval)};
}

itimerspec spec_of(const Timer& timer) {
  return {timespec_of(timer.interval), timespec_of(timer.left())};
}

Timer& own_alarm() {
  const auto pid = static_cast<int32_t>(kernel(SYS_getpid));
  if (alarm_pid != pid) the_alarm = Timer{};
  alarm_pid = pid;
  return the_alarm;
}

/// Sets the process's alarm to `timer`. Stores the previous alarm and its remaining time.
void set_alarm(const Timer& timer, Timer* before, int64_t* left_before) {
  Timer& known = own_alarm();
  *before = known;
  *left_before = known.left();
  known = timer;
  tell(0, timer);
}

int64_t ns_of(const timeval& time) {
  return time.tv_sec * kBillion + time.tv_usec * 1000;
}
timeval timeval_of(int64_t ns) {
  return {ns / kBillion, ns % kBillion / 1000};
}
bool is_valid(const timeval& time) {
  return time.tv_sec >= 0 && time.tv_usec >= 0 && time.tv_usec < 1'000'000;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(unsigned, alarm, (unsigned seconds)) {
  if (!active()) return next_alarm(seconds);
  Timer before;
  int64_t left = 0;
  set_alarm({seconds == 0 ? rocemu::abi::kNever : deadline_after(int64_t{seconds} * kBillion), 0},
            &before, &left);
  return left == 0 ? 0 : static_cast<unsigned>((left + kBillion - 1) / kBillion);
}

ROCEMU_REPLACE(int, setitimer, (int which, const itimerval* value, itimerval* old)) {
  if (which != ITIMER_REAL || !active()) return next_setitimer(which, value, old);
  const itimerval zero{};
  const itimerval& wanted = value != nullptr ? *value : zero;
  if (!is_valid(wanted.it_value) || !is_valid(wanted.it_interval)) {
    errno = EINVAL;
    return -1;
  }
  const int64_t first = ns_of(wanted.it_value);
  Timer before;
  int64_t left = 0;
  set_alarm({first == 0 ? rocemu::abi::kNever : deadline_after(first), ns_of(wanted.it_interval)},
            &before, &left);
  if (old != nullptr) *old = {timeval_of(before.interval), timeval_of(left)};
  return 0;
}

ROCEMU_REPLACE(int, getitimer, (int which, itimerval* value)) {
  if (which != ITIMER_REAL || !active()) return next_getitimer(which, value);
  const Timer& timer = own_alarm();
  *value = {timeval_of(timer.interval), timeval_of(timer.left())};
  return 0;
}

/// Creates an eventfd(2). Reading it works like reading a timerfd: it returns the number of
/// expirations since the last read.
ROCEMU_REPLACE(int, timerfd_create, (int clock, int flags)) {
  const bool is_known =
      clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
  if (!is_known || (flags & ~(TFD_CLOEXEC | TFD_NONBLOCK)) != 0 || !active())
    return next_timerfd_create(clock, flags);
  int kind = 0;
  if ((flags & TFD_CLOEXEC) != 0) kind |= EFD_CLOEXEC;
  if ((flags & TFD_NONBLOCK) != 0) kind |= EFD_NONBLOCK;
  const long fd = kernel(SYS_eventfd2, 0L, kind);
  if (fd < 0 || fd >= kMaxTimers) {
    if (fd >= 0) kernel(SYS_close, fd);
    return next_timerfd_create(clock, flags);
  }
  const uint32_t number = make_timer(static_cast<int>(fd), 0, 0, 0);
  if (number == 0) {
    kernel(SYS_close, fd);
    return next_timerfd_create(clock, flags);
  }
  descriptors[fd] = {number, clock, {}};
  return static_cast<int>(fd);
}

ROCEMU_REPLACE(int, timerfd_settime,
               (int fd, int flags, const itimerspec* value, itimerspec* old)) {
  Descriptor* const found = find(fd);
  if (found == nullptr || !active()) return next_timerfd_settime(fd, flags, value, old);
  if (!is_valid(value->it_value) || !is_valid(value->it_interval)) {
    errno = EINVAL;
    return -1;
  }
  if (old != nullptr) *old = spec_of(found->timer);
  found->timer = timer_of(*value, found->clock, (flags & TFD_TIMER_ABSTIME) != 0);
  // Expirations that were not read are lost (timerfd_settime(2)).
  const long flags_before = kernel(SYS_fcntl, fd, F_GETFL);
  kernel(SYS_fcntl, fd, F_SETFL, flags_before | O_NONBLOCK);
  uint64_t count;
  kernel(SYS_read, fd, &count, sizeof count);
  kernel(SYS_fcntl, fd, F_SETFL, flags_before);
  tell(found->number, found->timer);
  return 0;
}

ROCEMU_REPLACE(int, timerfd_gettime, (int fd, itimerspec* value)) {
  const Descriptor* const found = find(fd);
  if (found == nullptr || !active()) return next_timerfd_gettime(fd, value);
  *value = spec_of(found->timer);
  return 0;
}

/// Forgets the timer: after the close, the number can belong to another descriptor.
ROCEMU_REPLACE(int, close, (int fd)) {
  if (Descriptor* const found = find(fd); found != nullptr && active()) {
    delete_timer(found->number);
    *found = {};
  }
  forget_random_file(fd);
  before_close(fd);
  return next_close(fd);
}

ROCEMU_REPLACE(int, timer_create, (clockid_t clock, sigevent* event, timer_t* timer)) {
  const bool is_known =
      clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
  size_t index = 0;
  while (index < kMaxTimers && posix_timers[index].exists()) ++index;
  if (!is_known || index == kMaxTimers || !active()) return next_timer_create(clock, event, timer);
  auto* const id = reinterpret_cast<timer_t>(kOurs + index);
  PosixTimer made{.number = 0, .thread = nullptr, .clock = clock, .timer = {}};
  if (!make_posix_timer(event, id, &made)) return next_timer_create(clock, event, timer);
  posix_timers[index] = made;
  *timer = id;
  return 0;
}

ROCEMU_REPLACE(int, timer_settime,
               (timer_t timer, int flags, const itimerspec* value, itimerspec* old)) {
  PosixTimer* const found = find(timer);
  if (found == nullptr || !active()) return next_timer_settime(timer, flags, value, old);
  if (!is_valid(value->it_value) || !is_valid(value->it_interval)) {
    errno = EINVAL;
    return -1;
  }
  if (old != nullptr) *old = spec_of(found->timer);
  found->timer = timer_of(*value, found->clock, (flags & TIMER_ABSTIME) != 0);
  if (found->thread != nullptr) {
    set_thread_timer(found->thread, found->timer.deadline, found->timer.interval);
  } else {
    tell(found->number, found->timer);
  }
  return 0;
}

ROCEMU_REPLACE(int, timer_gettime, (timer_t timer, itimerspec* value)) {
  const PosixTimer* const found = find(timer);
  if (found == nullptr || !active()) return next_timer_gettime(timer, value);
  *value = spec_of(found->timer);
  return 0;
}

/// Returns 0: expirations are delivered one at a time, because the clock stops until the handler or
/// the thread has run.
ROCEMU_REPLACE(int, timer_getoverrun, (timer_t timer)) {
  return find(timer) != nullptr ? 0 : next_timer_getoverrun(timer);
}

ROCEMU_REPLACE(int, timer_delete, (timer_t timer)) {
  PosixTimer* const found = find(timer);
  if (found == nullptr) return next_timer_delete(timer);
  if (found->thread != nullptr) {
    delete_thread_timer(found->thread);
  } else if (active()) {
    delete_timer(found->number);
  }
  *found = {};
  return 0;
}
