#include "emulator/command/run/run_programs.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/run/ending.h"
#include "emulator/os/proc.h"
#include "emulator/os/threads/blocked_threads.h"

namespace rocemu::command {
namespace {

using std::chrono::milliseconds;

/// The time limit for the kernel to end a killed process, which may be writing to a slow disk.
constexpr milliseconds kKillTimeout{10'000};
/// The interval between two searches for newly started programs.
constexpr milliseconds kProgramsLookInterval{10};
constexpr size_t kMaxCommandLine = 200;

std::string name_of_program(pid_t process) {
  std::string path = proc::link_at(proc::directory_of(process) + "/exe");
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path.substr(path.rfind('/') + 1);
}

std::string status_of(pid_t process, std::string_view field) {
  return proc::field_of(proc::contents_of(proc::directory_of(process) + "/status"), field);
}

bool is_dead(pid_t process) {
  // A dead process is its own only thread until its parent waits for it.
  return proc::has_main_thread_ended(process) &&
         std::atoi(status_of(process, "Threads").c_str()) <= 1;
}

/// Returns whether the process is a NIC. Compares the process's name, since a NIC that was forked
/// without execve() has the executable of `rocemu run`.
bool is_nic(pid_t process) {
  return proc::name_of(process) == "rocemud";
}

}  // namespace

RunPrograms::RunPrograms() {
  const std::vector<pid_t> before = descendants(getpid(), [](pid_t) { return false; });
  from_before_.insert(before.begin(), before.end());
}

bool RunPrograms::is_left_out(pid_t process) const {
  return from_before_.contains(process) || is_nic(process);
}

std::vector<pid_t> RunPrograms::list() const {
  if (!proc::is_of_this_namespace()) {
    const bool runs = command_ > 0 && kill(command_, 0) == 0;
    return runs ? std::vector{command_} : std::vector<pid_t>();
  }
  std::vector<pid_t> found =
      descendants(getpid(), [this](pid_t process) { return is_left_out(process); });
  std::erase_if(found, is_dead);
  return found;
}

std::vector<std::string> RunPrograms::nics_inside(pid_t daemon) const {
  std::vector<std::string> dirs;
  const auto processes =
      descendants(getpid(), [this](pid_t process) { return from_before_.contains(process); });
  for (const pid_t process : processes) {
    if (process == daemon || !is_nic(process)) continue;
    constexpr std::string_view kOption("--dir\0", 6);
    const std::string line = proc::contents_of(proc::directory_of(process) + "/cmdline");
    const size_t at = line.find(kOption);
    if (at != std::string::npos) dirs.emplace_back(line.c_str() + at + kOption.size());
  }
  return dirs;
}

void RunPrograms::pass_on(int signal, pid_t except_group) const {
  std::vector<pid_t> programs = list();
  const std::set<pid_t> all(programs.begin(), programs.end());
  std::set<pid_t> below_another;          // inner `rocemu` processes
  for (const pid_t process : programs) {  // parents come before their children
    const pid_t parent = proc::parent_of(process);
    if (below_another.contains(parent) ||
        (all.contains(parent) && name_of_program(parent) == "rocemu"))
      below_another.insert(process);
  }
  for (const pid_t process : programs) {
    if (below_another.contains(process)) continue;
    if (except_group != 0 && getpgid(process) == except_group) continue;
    kill(process, signal);
    kill(process, SIGCONT);
  }
}

std::optional<int> RunPrograms::command_status() {
  int status = 0;
  if (!command_status_ && command_ > 0 && waitpid(command_, &status, WNOHANG) == command_)
    command_status_ = status;
  return command_status_;
}

bool RunPrograms::wait_until_gone(milliseconds timeout) {
  std::set<pid_t> seen;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const std::vector<pid_t> left = list();
    seen.insert(left.begin(), left.end());
    command_status();
    for (const pid_t process : seen)
      if (process != command_) waitpid(process, nullptr, WNOHANG);
    if (left.empty()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    command::wait_until_gone(left.front(), kProgramsLookInterval);
  }
}

void RunPrograms::kill_all() {
  const auto deadline = std::chrono::steady_clock::now() + kKillTimeout;
  do {
    for (const pid_t process : list()) kill(process, SIGKILL);
  } while (!wait_until_gone(kProgramsLookInterval) && std::chrono::steady_clock::now() < deadline);
}

void RunPrograms::end() {
  pass_on(SIGTERM);
  if (!wait_until_gone(kEndingGrace)) kill_all();
}

std::string list_programs(const std::vector<pid_t>& programs) {
  std::string text;
  for (const pid_t process : programs) {
    std::string line = proc::contents_of(proc::directory_of(process) + "/cmdline");
    while (!line.empty() && line.back() == '\0') line.pop_back();
    std::ranges::replace(line, '\0', ' ');
    std::ranges::replace_if(
        line, [](unsigned char c) { return c < ' '; }, '?');
    if (line.empty()) line = status_of(process, "Name");
    if (line.size() > kMaxCommandLine) line = line.substr(0, kMaxCommandLine) + "...";
    text += "  pid " + std::to_string(process) + ": " + line + "\n";
  }
  return text;
}

bool catches(pid_t process, int signal) {
  const uint64_t mask = std::strtoull(status_of(process, "SigCgt").c_str(), nullptr, 16);
  return ((mask >> (signal - 1)) & 1) != 0;
}

}  // namespace rocemu::command
