// A socket pair with which a process learns when the run that started it ends, and whether the run
// was killed. getppid(2) is not sufficient: a killed process closes its descriptors before its
// children get another parent.
#pragma once

#include <utility>

#include "emulator/os/unique_fd.h"

namespace rocemu {

/// The run's end of the socket pair. If it is closed without a message, the run was killed: the
/// kernel closes the descriptors of a killed process.
class RunLifetime {
 public:
  RunLifetime() = default;  // of no run
  explicit RunLifetime(UniqueFd fd) : fd_(std::move(fd)) {}
  /// Reports to the follower that the run has ended in order, and closes the socket.
  void end();
  explicit operator bool() const { return static_cast<bool>(fd_); }
  /// Closes this socket in a child of the run: as long as it is open, the run seems to be alive.
  void forget() { fd_.reset(); }

 private:
  UniqueFd fd_;
};

enum class RunState { kAlive, kEnded, kKilled };
/// The end of the socket pair in the process that must not outlive the run
class RunFollower {
 public:
  explicit RunFollower(UniqueFd fd) : fd_(std::move(fd)) {}
  /// Closes the follower's socket in the run, after the run has started the process.
  void forget() { fd_.reset(); }
  int fd() const { return fd_.get(); }  // readable when there is something to read; -1 for no run
  /// Returns the state of the run; kKilled if the socket cannot be read. Waits while there is
  /// nothing to read, unless the socket is non-blocking.
  RunState read();

 private:
  UniqueFd fd_;
  bool ended_in_order_ = false;
};

struct RunLifetimeEnds {
  RunLifetime run;
  RunFollower follower;
};
/// Creates both ends. Throws std::system_error.
RunLifetimeEnds make_run_lifetime();

}  // namespace rocemu
