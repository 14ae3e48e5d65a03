#include "emulator/command/daemons/process_exit.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "emulator/os/proc.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {
namespace {

using Clock = std::chrono::steady_clock;

bool has_ended(pid_t pid) {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0)
    return info.si_pid == pid;
  return kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

bool wait_until_gone(pid_t pid, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  const auto remaining = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  };
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process && errno == ESRCH) return true;
  while (!has_ended(pid)) {
    if (remaining().count() <= 0) return false;
    if (process) {
      pollfd poll_entry{.fd = process.get(), .events = POLLIN, .revents = 0};
      poll(&poll_entry, 1, static_cast<int>(remaining().count()));
      if ((poll_entry.revents & POLLIN) != 0) return true;  // a zombie has ended
    } else {                                                // before Linux 5.3 or in a sandbox
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  return true;
}

bool is_ending(pid_t pid) {
  // According to proc(5), the process flags are the 9th field of /proc/PID/stat, and the 7th field
  // after the process's name.
  constexpr unsigned long kExiting = 0x4;  // PF_EXITING
  constexpr int kFieldsBetween = 6;
  const std::string directory = proc::directory_of(pid);
  const std::string stat = proc::contents_of(directory + "/stat");
  size_t at = stat.rfind(')');
  for (int i = 0; i <= kFieldsBetween && at != std::string::npos; ++i) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return has_ended(pid);  // it is gone, or there is no /proc
  if ((std::strtoul(stat.c_str() + at, nullptr, 10) & kExiting) != 0) return true;
  const std::string status = proc::contents_of(directory + "/status");
  const auto is_killed_by = [&](const char* pending) {
    return (std::strtoull(proc::field_of(status, pending).c_str(), nullptr, 16) &
            1ull << (SIGKILL - 1)) != 0;
  };
  return is_killed_by("SigPnd") || is_killed_by("ShdPnd");
}

std::string describe_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return "was killed by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
  }
  return "ended with status " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace rocemu::command
