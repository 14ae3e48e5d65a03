// A thread of another process that is kept from running, and can be made to run one instruction at
// a time (ptrace(2)). A thread can be traced by one thread only: all of this is for one thread.
// With SIGCHLD blocked in all of the process it is told at once when another stops; else it looks
// each millisecond.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace rocemu {

class StoppedThread {
 public:
  /// How the thread goes on when it is let go.
  enum class End {
    kRuns,
    kEnded,  // it has ended, and its parent can be told so only when we have taken note (reap())
    kGone,
  };

  /// Nothing if it may not be traced, is traced by somebody else, or ends. `ended` is then the
  /// thread that is to be reaped, if there is one.
  static std::optional<StoppedThread> stop(pid_t process, pid_t thread,
                                           std::optional<pid_t>& ended);

  /// A number for its general registers; nothing if they say that it is in a system call, or that
  /// its next instruction makes one or cannot be run by itself.
  std::optional<uint64_t> state() const;

  /// A signal stopped it, which it handles when it is let go; to run an instruction would lose it.
  bool has_signal() const;

  /// Runs one instruction. False if it did not come back from it as usual: it has a signal to
  /// handle, or ended.
  bool step();

  End let_go();

  /// True once there is nothing left of a thread that ended while it was stopped by us. False too
  /// for one that is stopped and lives.
  static bool reap(pid_t thread);

 private:
  StoppedThread(pid_t thread, int status) : thread_(thread), status_(status) {}

  pid_t thread_;
  int status_;  // of waitpid(2), when it stopped last
};

}  // namespace rocemu
