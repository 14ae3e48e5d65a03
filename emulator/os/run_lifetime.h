// Lets a process live as long as the run that started it, and learn how the run ended. getppid(2)
// is not sufficient: a killed process closes its descriptors before its children get another
// parent.
#pragma once

#include <utility>

#include "emulator/os/unique_fd.h"

namespace rocemu {

/// The run's end of the connection. If it is closed without a message, as by the kernel for a
/// killed process, the run was killed.
class RunLifetime {
 public:
  RunLifetime() = default;  // of no run
  explicit RunLifetime(UniqueFd fd) : fd_(std::move(fd)) {}
  /// Reports that the run has ended by itself, and closes the end.
  void end();
  explicit operator bool() const { return static_cast<bool>(fd_); }
  /// Closes the end in a child of the run, which must not keep the run alive.
  void forget() { fd_.reset(); }

 private:
  UniqueFd fd_;
};

enum class RunState { kAlive, kEnded, kKilled };
/// The end of the process that lives as long as the run
class RunFollower {
 public:
  explicit RunFollower(UniqueFd fd) : fd_(std::move(fd)) {}
  /// Closes the follower's end in the run, after it has started the process.
  void forget() { fd_.reset(); }
  int fd() const { return fd_.get(); }  // readable when there is something to read; -1 for no run
  /// Returns the state of the run. Returns kKilled also if the descriptor cannot be read. Waits if
  /// there is nothing to read and the descriptor blocks.
  RunState read();

 private:
  UniqueFd fd_;
  bool ended_in_order_ = false;
};

struct RunLifetimeEnds {
  RunLifetime run;
  RunFollower follower;
};
/// Throws std::system_error.
RunLifetimeEnds make_run_lifetime();

}  // namespace rocemu
