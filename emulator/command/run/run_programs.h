// The programs of a run: every process that descends from `rocemu run`. It is their subreaper
// (prctl(2), PR_SET_CHILD_SUBREAPER), so a process that daemon(3) or setsid(2) detached from its
// parent becomes a child of `rocemu run`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rocemu::command {

class RunPrograms {
 public:
  /// Construct it before the command is started: children that this process already has, such as
  /// one that a shell started before it became `rocemu run`, are not part of the run.
  RunPrograms();

  /// Sets the command, once it is started.
  void set_command(pid_t command) { command_ = command; }
  /// Returns the wait status of the command, as waitpid(2) does; nothing until it has ended.
  std::optional<int> command_status();

  /// Returns the running programs by age, without NICs; only the command if /proc is that of
  /// another PID namespace.
  std::vector<pid_t> list() const;

  /// Returns the directories of the NICs of runs inside this one, whose own NIC is `daemon`.
  std::vector<std::string> nics_inside(pid_t daemon) const;

  /// Sends a signal to each program that is not in the process group `except_group`, and continues
  /// stopped programs. A `rocemu` among them passes the signal on itself, and a NIC ends with its
  /// run.
  void pass_on(int signal, pid_t except_group = 0) const;

  /// Waits until all programs have ended. Returns false after the time. Our children are reaped:
  /// with turns, other programs continue only when one that ends has been reaped.
  bool wait_until_gone(std::chrono::milliseconds timeout);

  /// Kills all programs, and those that they start meanwhile, and waits until they have ended.
  void kill_all();

  /// Ends the programs by SIGTERM, and those that are left after the grace by SIGKILL.
  void end();

 private:
  bool is_left_out(pid_t process) const;

  pid_t command_ = 0;
  std::optional<int> command_status_;
  std::set<pid_t> from_before_;
};

/// Returns a line for each process: "pid 12: server -p 7471".
std::string list_programs(const std::vector<pid_t>& programs);

/// Returns whether the process has a handler for the signal.
bool catches(pid_t process, int signal);

}  // namespace rocemu::command
