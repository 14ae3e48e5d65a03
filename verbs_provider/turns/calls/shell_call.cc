// system(3): the library's function waits for the shell in the kernel; this one waits in turns.
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/cycle_counter.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<int(const char*)> next_system("system");

/// system(3): "During execution of the command, SIGCHLD will be blocked, and SIGINT and SIGQUIT
/// will be ignored, in the process that calls system()." Several threads can be in the call at the
/// same time.
class SignalsOfShell {
 public:
  SignalsOfShell() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child, &mask_);
    if (users_++ != 0) return;
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignore, &interrupt_);
    sigaction(SIGQUIT, &ignore, &quit_);
  }
  ~SignalsOfShell() {
    if (--users_ == 0) {
      sigaction(SIGINT, &interrupt_, nullptr);
      sigaction(SIGQUIT, &quit_, nullptr);
    }
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  SignalsOfShell(const SignalsOfShell&) = delete;
  SignalsOfShell& operator=(const SignalsOfShell&) = delete;

  /// Sets the attributes with which the shell starts: the previous signal mask and actions. Signals
  /// that the program handles have their default actions.
  void give_to(posix_spawnattr_t* attributes) const {
    sigset_t standard;
    sigemptyset(&standard);
    if (interrupt_.sa_handler != SIG_IGN) sigaddset(&standard, SIGINT);
    if (quit_.sa_handler != SIG_IGN) sigaddset(&standard, SIGQUIT);
    posix_spawnattr_setsigmask(attributes, &mask_);
    posix_spawnattr_setsigdefault(attributes, &standard);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }

 private:
  static inline int users_ = 0;
  static inline struct sigaction interrupt_, quit_;
  sigset_t mask_;
};

int run_shell(const char* command) {
  const SignalsOfShell signals;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  signals.give_to(&attributes);
  char shell[] = "sh", option[] = "-c";
  char* const arguments[] = {shell, option, const_cast<char*>(command), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/bin/sh", nullptr, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  // system(3): "If a shell could not be executed in the child process, then the return value is as
  // though the child shell terminated by calling _exit(2) with the status 127."
  if (error != 0) return 127 << 8;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, system, (const char* command)) {
  if (command != nullptr && active()) return run_shell(command);
  const RealCycles real;
  return next_system(command);
}
