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
  /// Must be constructed before the command is started. Children that this process already has are
  /// not part of the run: for example, a shell may have started them before it executed `rocemu
  /// run` in its place.
  RunPrograms();

  /// Sets the command after it was started.
  void set_command(pid_t command) { command_ = command; }
  /// Returns the wait status of the command, as waitpid(2) does; nothing until it has ended.
  std::optional<int> command_status();

  /// Returns the running programs, the oldest first, without NICs. Returns only the command if
  /// /proc belongs to another PID namespace.
  std::vector<pid_t> list() const;

  /// Returns the directories of NICs that belong to runs inside this run. `daemon` is this run's
  /// own NIC.
  std::vector<std::string> nics_inside(pid_t daemon) const;

  /// Sends a signal to each program that is not in the process group `except_group`, and continues
  /// stopped programs. Does not signal the programs of an inner `rocemu`, which passes the signal
  /// on itself, or NICs, which end with their runs.
  void pass_on(int signal, pid_t except_group = 0) const;

  /// Waits until all programs have ended. Returns false after the timeout. Reaps the children of
  /// this process meanwhile: with turns, other programs continue only after a program that ended
  /// has been reaped.
  bool wait_until_gone(std::chrono::milliseconds timeout);

  /// Kills all programs, and those that they start meanwhile, and waits for their end.
  void kill_all();

  /// Sends the programs SIGTERM, and SIGKILL to those that still run after the grace time.
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
