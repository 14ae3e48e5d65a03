// Replaces the syscall function, by which programs can directly make system calls whose functions
// are replaced.
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <ctime>
#include <utility>

#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/cycle_counter.h"
#include "verbs_provider/turns/fault_action.h"
#include "verbs_provider/turns/futex.h"
#include "verbs_provider/turns/shown_processors.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

using Arguments = long[6];

template <class Result, class... Parameters, size_t... kIndex>
long call(Result (*function)(Parameters...), const Arguments& arguments,
          std::index_sequence<kIndex...>) {
  const auto result = static_cast<long>(function((Parameters)arguments[kIndex]...));
  return result == -1 ? -errno : result;
}

/// Calls the function of libc that has the parameters of the system call. Returns the kernel's
/// result.
template <class Result, class... Parameters>
long call(Result (*function)(Parameters...), const Arguments& arguments) {
  return call(function, arguments, std::index_sequence_for<Parameters...>());
}

/// Calls pselect(). The last argument of pselect6(2) points to the mask and the mask's size.
long call_pselect(const Arguments& arguments) {
  const auto* const masked = reinterpret_cast<const sigset_t* const*>(arguments[5]);
  return call(pselect, {arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                        masked == nullptr ? 0 : reinterpret_cast<long>(*masked)});
}

/// Makes the call through the replaced functions and returns true if the call waits, reads a clock
/// or sets a timer. Returns false for other calls.
bool call_replaced(long number, const Arguments& arguments, long* result) {
#define ROCEMU_CALL(name, function)      \
  case SYS_##name:                       \
    *result = call(function, arguments); \
    return true
  switch (number) {
    // Clocks and sleep
    ROCEMU_CALL(clock_gettime, clock_gettime);
    ROCEMU_CALL(nanosleep, nanosleep);
    ROCEMU_CALL(sched_yield, sched_yield);
    case SYS_clock_nanosleep:  // its function returns the error
      *result = -call(clock_nanosleep, arguments);
      return true;
    case SYS_gettimeofday:
      *result = gettimeofday(reinterpret_cast<timeval*>(arguments[0]),
                             reinterpret_cast<struct timezone*>(arguments[1]));
      return true;
      // Descriptors
      ROCEMU_CALL(ppoll, ppoll);
      ROCEMU_CALL(epoll_pwait, epoll_pwait);
    case SYS_pselect6:
      *result = call_pselect(arguments);
      return true;
      ROCEMU_CALL(read, read);
      ROCEMU_CALL(readv, readv);
      ROCEMU_CALL(write, write);
      ROCEMU_CALL(writev, writev);
      ROCEMU_CALL(recvfrom, recvfrom);
      ROCEMU_CALL(recvmsg, recvmsg);
      ROCEMU_CALL(sendto, sendto);
      ROCEMU_CALL(sendmsg, sendmsg);
      ROCEMU_CALL(accept, accept);
      ROCEMU_CALL(accept4, accept4);
      ROCEMU_CALL(flock, flock);
      ROCEMU_CALL(close, close);
      // Calls of timers, signals and child processes
      ROCEMU_CALL(setitimer, setitimer);
      ROCEMU_CALL(getitimer, getitimer);
      ROCEMU_CALL(timerfd_create, timerfd_create);
      ROCEMU_CALL(timerfd_settime, timerfd_settime);
      ROCEMU_CALL(timerfd_gettime, timerfd_gettime);
      ROCEMU_CALL(rt_sigtimedwait, sigtimedwait);
      ROCEMU_CALL(rt_sigsuspend, sigsuspend);
      ROCEMU_CALL(wait4, wait4);
      ROCEMU_CALL(waitid, waitid);
      // Queues and semaphores
      ROCEMU_CALL(semop, semop);
      ROCEMU_CALL(semtimedop, semtimedop);
      ROCEMU_CALL(msgrcv, msgrcv);
      ROCEMU_CALL(msgsnd, msgsnd);
      ROCEMU_CALL(mq_timedreceive, mq_timedreceive);
      ROCEMU_CALL(mq_timedsend, mq_timedsend);
      ROCEMU_CALL(getrandom, getrandom);
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
      *result = call(epoll_pwait2, arguments);
      return true;
#endif
#ifdef __x86_64__  // Newer architectures only have the calls above.
      ROCEMU_CALL(time, time);
      ROCEMU_CALL(poll, poll);
      ROCEMU_CALL(select, select);
      ROCEMU_CALL(epoll_wait, epoll_wait);
      ROCEMU_CALL(alarm, alarm);
      ROCEMU_CALL(pause, pause);
#endif
    default:
      return false;
  }
#undef ROCEMU_CALL
}

long call_kernel(long number, const Arguments& arguments) {
  return kernel_words(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                      arguments[5]);
}

/// Makes the calls that have no replaced function of the same name.
long call_other(long number, Arguments& arguments) {
  switch (number) {
    case SYS_futex:
      return do_futex(arguments);
    case SYS_sched_getaffinity: {  // returns the number of bytes that it has written
      const long bytes = call_kernel(number, arguments);
      if (bytes > 0)
        tell_of_all_processors(static_cast<pid_t>(arguments[0]), static_cast<size_t>(bytes),
                               reinterpret_cast<cpu_set_t*>(arguments[2]));
      return bytes;
    }
    case SYS_sched_setaffinity: {
      const long result = call_kernel(number, arguments);
      if (result == 0) processors_are_chosen(static_cast<pid_t>(arguments[0]));
      return result;
    }
    case SYS_execve:
    case SYS_execveat: {
      const RealCycles real;
      return call_kernel(number, arguments);
    }
    case SYS_rt_sigprocmask: {
      const MaskWithoutFaults mask(reinterpret_cast<const sigset_t*>(arguments[1]));
      if (arguments[0] != SIG_UNBLOCK) arguments[1] = reinterpret_cast<long>(mask.get());
      return call_kernel(number, arguments);
    }
#ifdef SYS_clone
    case SYS_clone:
#endif
#ifdef SYS_clone3
    case SYS_clone3:
#endif
      require_quiescence();
      [[fallthrough]];
    default:
      return call_kernel(number, arguments);
  }
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(long, syscall, (long number, ...)) {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  long result = 0;
  if (!call_replaced(number, arguments, &result)) result = call_other(number, arguments);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}
