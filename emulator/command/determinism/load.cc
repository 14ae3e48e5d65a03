#include "emulator/command/determinism/load.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "emulator/command/base/error.h"

namespace rocemu::command {
namespace {

[[noreturn]] void be_busy() {
  for (volatile unsigned turns = 0;;) turns = turns + 1;
}

}  // namespace

Load::Load() {
  const pid_t parent = getpid();
  const unsigned wanted = 2 * std::max(std::thread::hardware_concurrency(), 1u);
  while (processes_.size() < wanted) {
    const pid_t pid = fork();
    if (pid < 0) {
      const int error = errno;
      end();
      fail_with_errno("cannot start a process that puts load on the machine", error);
    }
    if (pid > 0) {
      processes_.push_back(pid);
      continue;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    be_busy();
  }
}

Load::~Load() {
  end();
}

void Load::end() {
  for (const pid_t pid : processes_) kill(pid, SIGKILL);
  for (const pid_t pid : processes_) waitpid(pid, nullptr, 0);
  processes_.clear();
}

}  // namespace rocemu::command
