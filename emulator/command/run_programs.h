// The programs of a run: every process that descends from `rocemu run`. It is their subreaper
// (prctl(2), PR_SET_CHILD_SUBREAPER), so one that a daemon(3) or setsid(2) took away from its
// parent is a child of `rocemu run` then.
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
  /// Begins before the command is started: children that this process has already, as one that a
  /// shell started before it became `rocemu run`, are none of the run.
  RunPrograms();

  /// The command, once it is started.
  void set_command(pid_t command) { command_ = command; }
  /// Returns how the command ended, as waitpid(2) does; nothing before it has.
  std::optional<int> command_status();

  /// Returns all of them by age, without those that have ended and without NICs. Only the command
  /// if /proc is that of another PID namespace.
  std::vector<pid_t> list() const;

  /// Returns the directories of the NICs of runs inside of this one, whose own is `daemon`.
  std::vector<std::string> nics_inside(pid_t daemon) const;

  /// Sends a signal to each of them that is not in the process group `except_group`, and continues
  /// those that are stopped. A `rocemu` among them passes it on itself, and a NIC ends with its
  /// run.
  void pass_on(int signal, pid_t except_group = 0) const;

  /// Waits until all have ended. Returns false after the time. Children of ours are reaped: in
  /// turns others go on only when one that ends is gone.
  bool wait_until_gone(std::chrono::milliseconds timeout);

  /// Kills all of them, and what they start meanwhile, and waits until they are gone.
  void kill_all();

  /// Ends them by SIGTERM, and those that are left after the grace by SIGKILL.
  void end();

 private:
  bool is_left_out(pid_t process) const;

  pid_t command_ = 0;
  std::optional<int> command_status_;
  std::set<pid_t> from_before_;
};

/// Returns "pid 12: server -p 7471" for each, a line each.
std::string list_programs(const std::vector<pid_t>& programs);

/// Returns whether the process has a handler for the signal.
bool catches(pid_t process, int signal);

}  // namespace rocemu::command
