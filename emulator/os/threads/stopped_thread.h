// A thread of another process that is stopped, and can be made to run one instruction at a time
// (ptrace(2)). Only one thread can trace a thread, so all functions must be called by the same
// thread. If SIGCHLD is blocked in the whole process, the caller is notified at once when a traced
// thread stops; otherwise it checks every millisecond.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace rocemu {

class StoppedThread {
 public:
  /// The state of the thread after its release
  enum class End {
    kRuns,
    kEnded,  // it has ended, and its parent is notified only after reap()
    kGone,
  };

  /// Stops the thread. Returns nothing if the thread may not be traced, is traced by another
  /// process, or ends. In the last case, `ended` is the thread that must be reaped.
  static std::optional<StoppedThread> stop(pid_t process, pid_t thread,
                                           std::optional<pid_t>& ended);

  /// Returns a hash of the general registers. Returns nothing if the thread is in a system call, or
  /// if its next instruction starts one or cannot be run alone.
  std::optional<uint64_t> state() const;

  /// Returns whether the thread was stopped by a signal. The thread handles the signal when it is
  /// released; step() would lose the signal.
  bool has_signal() const;

  /// Runs one instruction. Returns false if the thread has a signal to handle or has ended instead.
  bool step();

  End let_go();

  /// Reaps a thread that ended while we traced it. Returns true once nothing is left of the thread,
  /// and false while it is alive.
  static bool reap(pid_t thread);

 private:
  StoppedThread(pid_t thread, int status) : thread_(thread), status_(status) {}

  pid_t thread_;
  int status_;  // of waitpid(2), when it last stopped
};

}  // namespace rocemu
