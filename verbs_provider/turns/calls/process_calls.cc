// Replaces the calls that start processes, wait for their end, and send signals to them.
#include <cerrno>
#include <csignal>
#include <cstdio>

#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/system/signal_restart.h"
#include "verbs_provider/turns/cycle_counter.h"
#include "verbs_provider/turns/forks.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                  char* const*, char* const*);

shim::Next<pid_t()> next_fork("fork");
shim::Next<Spawn> next_posix_spawn("posix_spawn");
shim::Next<Spawn> next_posix_spawnp("posix_spawnp");
shim::Next<FILE*(const char*, const char*)> next_popen("popen");
shim::Next<pid_t(pid_t, int*, int, rusage*)> next_wait4("wait4");
shim::Next<int(idtype_t, id_t, siginfo_t*, int)> next_waitid("waitid");
shim::Next<int(pid_t, int)> next_kill("kill");
shim::Next<int(pid_t, int)> next_killpg("killpg");
shim::Next<int(pid_t, int, sigval)> next_sigqueue("sigqueue");
shim::Next<int(pthread_t, int)> next_pthread_kill("pthread_kill");

/// Waits until the signal that the calling thread has sent has acted: the receiver's handler, or
/// the receiver itself, has ended before any other thread has a turn.
void let_signal_act() {
  if (!active()) return;
  require_quiescence();
  give(Call::of(SYS_kill), 0, abi::ThreadSlot::kProgressed);
}

pid_t wait_for_child(pid_t child, int* status, int options, rusage* usage) {
  if (!active()) return next_wait4(child, status, options, usage);
  const Call call = Call::of(SYS_wait4, child);
  long result = 0;
  const auto look = [&] {
    result = kernel(SYS_wait4, child, status, options | WNOHANG, usage);
    return result != 0;
  };
  if ((options & WNOHANG) != 0) {
    if (look()) {
      progressed();
    } else {
      found_nothing(call, static_cast<uint64_t>(child));
    }
  } else {
    for (;;) {
      const End end = wait(call, abi::kNever, look, abi::ThreadSlot::kAwaitsChild);
      if (end == End::kLeft) return next_wait4(child, status, options, usage);
      if (end != End::kInterrupted) break;
      if (look()) break;
      if (shim::restarts_after_signals()) continue;
      result = -EINTR;
      break;
    }
  }
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

int spawn(Spawn* next, pid_t* pid, const char* program, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  const RealCycles real;
  pid_t started = 0;
  const int error = next(&started, program, actions, attributes, arguments, environment);
  if (pid != nullptr && error == 0) *pid = started;
  if (error == 0 && active()) {
    if (abi::ThreadSlot* slot = take_slot()) slot->pid.store(started);
    require_quiescence();
  }
  return error;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(pid_t, fork, ()) {
  const pid_t pid = next_fork();
  if (pid != 0) forked(pid);
  return pid;
}

/// Behaves like fork(2), which vfork(2) permits. A real vfork would make the parent wait in the
/// kernel.
ROCEMU_REPLACE(pid_t, vfork, ()) {
  return rocemu_shim_fork();
}

ROCEMU_REPLACE(int, posix_spawn,
               (pid_t * pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment)) {
  return spawn([](auto... all) { return next_posix_spawn(all...); }, pid, path, actions, attributes,
               arguments, environment);
}

ROCEMU_REPLACE(int, posix_spawnp,
               (pid_t * pid, const char* file, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment)) {
  return spawn([](auto... all) { return next_posix_spawnp(all...); }, pid, file, actions,
               attributes, arguments, environment);
}

ROCEMU_REPLACE(FILE*, popen, (const char* command, const char* mode)) {
  const RealCycles real;
  FILE* const file = next_popen(command, mode);
  require_quiescence();
  return file;
}

ROCEMU_REPLACE(pid_t, wait4, (pid_t child, int* status, int options, rusage* usage)) {
  return wait_for_child(child, status, options, usage);
}
ROCEMU_REPLACE(pid_t, wait3, (int* status, int options, rusage* usage)) {
  return wait_for_child(-1, status, options, usage);
}
ROCEMU_REPLACE(pid_t, waitpid, (pid_t child, int* status, int options)) {
  return wait_for_child(child, status, options, nullptr);
}
ROCEMU_REPLACE(pid_t, wait, (int* status)) {
  return wait_for_child(-1, status, 0, nullptr);
}

ROCEMU_REPLACE(int, waitid, (idtype_t type, id_t id, siginfo_t* info, int options)) {
  if (!active()) return next_waitid(type, id, info, options);
  siginfo_t unused;
  siginfo_t* const found = info != nullptr ? info : &unused;
  const Call call = Call::of(SYS_wait4, -1);
  long result = 0;
  const auto look = [&] {
    found->si_pid = 0;
    result = kernel(SYS_waitid, static_cast<long>(type), id, found, options | WNOHANG, nullptr);
    return result != 0 || found->si_pid != 0;
  };
  if ((options & WNOHANG) != 0) {
    if (!look()) found_nothing(call, id);
  } else {
    for (;;) {
      const End end = wait(call, rocemu::abi::kNever, look, rocemu::abi::ThreadSlot::kAwaitsChild);
      if (end == End::kLeft) return next_waitid(type, id, info, options);
      if (end != End::kInterrupted || look()) break;
      if (rocemu::shim::restarts_after_signals()) continue;
      result = -EINTR;
      break;
    }
  }
  if (result < 0) errno = static_cast<int>(-result);
  return result < 0 ? -1 : 0;
}

ROCEMU_REPLACE(int, kill, (pid_t pid, int signal)) {
  const int result = next_kill(pid, signal);
  if (result == 0 && signal != 0) let_signal_act();
  return result;
}
ROCEMU_REPLACE(int, killpg, (pid_t group, int signal)) {
  const int result = next_killpg(group, signal);
  if (result == 0 && signal != 0) let_signal_act();
  return result;
}
ROCEMU_REPLACE(int, sigqueue, (pid_t pid, int signal, sigval value)) {
  const int result = next_sigqueue(pid, signal, value);
  if (result == 0 && signal != 0) let_signal_act();
  return result;
}
ROCEMU_REPLACE(int, pthread_kill, (pthread_t thread, int signal)) {
  const int result = next_pthread_kill(thread, signal);
  if (result == 0 && signal != 0 && pthread_equal(thread, pthread_self()) == 0) let_signal_act();
  return result;
}
