#include "emulator/command/base/child_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "emulator/command/base/error.h"

namespace rocemu::command {
namespace {

/// Queues the signals that would end this process, so that the process can clean up before it ends.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&signals_);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      sigaddset(&signals_, number);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  ~HeldSignals() { restore(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  siginfo_t next() const {
    siginfo_t info{};
    while (sigwaitinfo(&signals_, &info) < 0) {
    }
    return info;
  }

 private:
  sigset_t signals_{}, before_{};
};

void open_as(int descriptor, const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0 || dup2(fd, descriptor) < 0) {
    dprintf(STDERR_FILENO, "rocemu: cannot open %s: %s\n", path.c_str(), strerror(errno));
    _exit(kExitFailure);
  }
}

pid_t start(Arguments& arguments, const ChildOutput& files, const std::function<void()>& prepare,
            const HeldSignals& signals) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail_with_errno("cannot start another process", errno);
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kExitFailure);
  signals.restore();
  if (prepare) prepare();
  open_as(STDIN_FILENO, "/dev/null", O_RDONLY);
  constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
  open_as(STDOUT_FILENO, files.output, kNew);
  if (files.errors == files.output) {
    dup2(STDOUT_FILENO, STDERR_FILENO);
  } else {
    open_as(STDERR_FILENO, files.errors, kNew);
  }
  execv("/proc/self/exe", argv.data());
  dprintf(STDERR_FILENO, "rocemu: cannot run rocemu itself: %s\n", strerror(errno));
  _exit(kExitFailure);
}

int wait_for(pid_t pid, const HeldSignals& signals) {
  std::optional<int> ended_by;
  for (;;) {
    const siginfo_t signal = signals.next();
    if (signal.si_signo != SIGCHLD) {
      ended_by = signal.si_signo;
      kill(pid, SIGTERM);
      continue;
    }
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) continue;
    if (ended_by) throw Error(kExitSignalBase + *ended_by, "run: killed by a signal");
    return WIFSIGNALED(status) ? kExitSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

}  // namespace

int run_child(Arguments arguments, const ChildOutput& files, const std::function<void()>& prepare) {
  const HeldSignals signals;
  return wait_for(start(arguments, files, prepare, signals), signals);
}

}  // namespace rocemu::command
