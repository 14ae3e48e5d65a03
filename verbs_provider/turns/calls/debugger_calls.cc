// The daemon traces a thread for some milliseconds to detect whether it spins
// (emulator/os/threads/spinning_threads.h), and a thread can have only one tracer (ptrace(2)). A
// debugger that attaches in this time waits until the daemon has detached.
#include <cerrno>
#include <cstdarg>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/times.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<long(int, ...)> next_ptrace("ptrace");

/// The longest wait for the tracer, in nanoseconds of real time. The daemon traces for 10 ms,
/// longer on a busy machine. After this limit the tracer is another process, or the thread cannot
/// be traced at all.
constexpr int64_t kLongestLook = 1'000'000'000;

int64_t real_time_ns() {
  timespec now{};
  kernel(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * kBillion + now.tv_nsec;
}

bool begins_to_trace(int request) {
  return request == PTRACE_TRACEME || request == PTRACE_ATTACH || request == PTRACE_SEIZE;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(long, ptrace, (int request, ...)) {
  va_list arguments;
  va_start(arguments, request);
  const pid_t thread = va_arg(arguments, pid_t);
  void* const address = va_arg(arguments, void*);
  void* const data = va_arg(arguments, void*);
  va_end(arguments);
  long result = next_ptrace(request, thread, address, data);
  if (!begins_to_trace(request) || !joined()) return result;
  const int64_t until = real_time_ns() + kLongestLook;
  while (result != 0 && errno == EPERM && real_time_ns() < until) {
    kernel(SYS_sched_yield);  // without sleeping, which would pass the turn on
    result = next_ptrace(request, thread, address, data);
  }
  return result;
}
