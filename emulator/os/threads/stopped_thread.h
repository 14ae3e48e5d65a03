// A thread of another process that is prevented from running, and can be made to run one
// instruction at a time (ptrace(2)). A thread can be traced by one thread only, so all functions
// must be called by one thread. If SIGCHLD is blocked in the whole process, that thread is notified
// at once when another one stops; otherwise it checks every millisecond.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace rocemu {

class StoppedThread {
 public:
  /// How the thread continues when it is released
  enum class End {
    kRuns,
    kEnded,  // it has ended, and its parent is notified only after reap()
    kGone,
  };

  /// Returns nothing if the thread may not be traced, is traced by another process, or ends.
  /// `ended` is then the thread that must be reaped, if there is one.
  static std::optional<StoppedThread> stop(pid_t process, pid_t thread,
                                           std::optional<pid_t>& ended);

  /// Returns a hash of its general registers; nothing if it is in a system call, or if its next
  /// instruction makes one or cannot be run by itself.
  std::optional<uint64_t> state() const;

  /// Returns whether a signal stopped it, which it handles when it is released; running an
  /// instruction would lose the signal.
  bool has_signal() const;

  /// Runs one instruction. Returns false if the thread did not stop after it as usual: it has a
  /// signal to handle, or ended.
  bool step();

  End let_go();

  /// Returns true once nothing is left of a thread that ended while it was stopped by us. Also
  /// returns false for a stopped thread that is alive.
  static bool reap(pid_t thread);

 private:
  StoppedThread(pid_t thread, int status) : thread_(thread), status_(status) {}

  pid_t thread_;
  int status_;  // of waitpid(2), when it last stopped
};

}  // namespace rocemu
