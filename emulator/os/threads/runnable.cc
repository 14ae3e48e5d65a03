#include "emulator/os/threads/runnable.h"

#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <tuple>

#include "emulator/os/proc.h"

namespace rocemu {
namespace {

using Clock = std::chrono::steady_clock;

std::string task_directory(pid_t process, pid_t thread) {
  return proc::directory_of(process) + "/task/" + std::to_string(thread);
}

/// Returns the name of the kernel function in which the thread sleeps. Returns "0" if the thread
/// has a processor or waits for one, or if we lack the permission; an empty string if the kernel
/// has no such names (proc(5), /proc/pid/wchan).
std::string wchan_of(pid_t process, pid_t thread) {
  return proc::contents_of(task_directory(process, thread) + "/wchan");
}

/// Returns whether the kernel may report "0" for a thread that sleeps. Since Linux 6.12 such a
/// thread stays in its processor's run queue until it would have run again (DELAY_DEQUEUE in
/// kernel/sched/features.h).
bool sleepers_may_be_queued() {
  utsname system{};
  int major = 0, minor = 0;
  uname(&system);
  return std::sscanf(system.release, "%d.%d", &major, &minor) != 2 ||
         std::tie(major, minor) >= std::make_tuple(6, 12);
}

bool has_slept(pid_t thread) {
  const std::string status = proc::contents_of(task_directory(getpid(), thread) + "/status");
  return proc::field_of(status, "voluntary_ctxt_switches") != "0";
}

/// Returns whether /proc reports the kernel function in which a thread sleeps. Starts a thread that
/// sleeps, and looks for its function. Linux 4.14 to 5.15 report "0" for many sleeping threads, and
/// a kernel without names of its functions does so for all.
bool try_with_a_sleeper() {
  if (access("/proc/kallsyms", F_OK) != 0) return false;
  constexpr std::chrono::seconds kAnyLoad{10};
  constexpr std::chrono::milliseconds kOffItsProcessor{100};
  std::atomic<bool> wanted = true;
  std::atomic<pid_t> sleeper_id = 0;
  std::thread sleeper([&] {
    sleeper_id = gettid();
    sleeper_id.notify_one();
    wanted.wait(true);
  });
  sleeper_id.wait(0);
  const Clock::time_point begin = Clock::now();
  while (!has_slept(sleeper_id) && Clock::now() < begin + kAnyLoad) std::this_thread::yield();
  const Clock::time_point until =
      Clock::now() + (sleepers_may_be_queued() ? Clock::duration(kAnyLoad) : kOffItsProcessor);
  std::string wchan;
  do {
    std::this_thread::yield();
    wchan = wchan_of(getpid(), sleeper_id);
  } while (wchan == "0" && Clock::now() < until);
  wanted = false;
  wanted.notify_one();
  sleeper.join();
  // The thread is listed in /proc for a moment after it was joined. The process must have only one
  // thread again, because rocemu forks a NIC only then.
  while (syscall(SYS_tgkill, getpid(), sleeper_id.load(), 0) == 0) std::this_thread::yield();
  return wchan != "0" && !wchan.empty();
}

bool kernel_reveals_wchan() {
  static const bool tells = try_with_a_sleeper();
  return tells;
}

/// Returns whether we may read where the process's threads sleep. The kernel demands the same
/// permission for this as for the program's memory (proc(5)).
bool may_ask(pid_t process) {
  char program[1];
  return readlink((proc::directory_of(process) + "/exe").c_str(), program, sizeof program) >= 0 ||
         errno != EACCES;
}

}  // namespace

bool is_runnable(pid_t process, pid_t thread) {
  return wchan_of(process, thread) == "0" && may_ask(process) && kernel_reveals_wchan();
}

void prepare_is_runnable() {
  kernel_reveals_wchan();
}

}  // namespace rocemu
