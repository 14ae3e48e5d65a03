// Threads that spin: that run in a loop which cannot end by itself, since it only looks at memory.
//
// A thread that may be one is run instruction by instruction: if its registers go through the same
// states again and again, so it does for ever, unless something changes memory. It is held then: it
// does not run, and takes no processor from those that do. When memory may have changed it is sent
// round its loop once, and if that leads elsewhere, let go.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "emulator/os/threads/stopped_thread.h"

namespace rocemu {

class SpinningThreads {
 public:
  SpinningThreads() = default;
  ~SpinningThreads();
  SpinningThreads(const SpinningThreads&) = delete;
  SpinningThreads& operator=(const SpinningThreads&) = delete;

  /// Looks at a thread that runs; less and less often at one that computes. True if it spins: it is
  /// held from now on.
  bool hold_if_it_spins(pid_t process, pid_t thread);
  bool holds(pid_t thread) const { return held_.contains(thread); }
  bool holds_any() const { return !held_.empty(); }
  /// It was told to stop, and did not do so in time: when it does, it is not asleep, but let go.
  bool is_stopping(pid_t thread) const { return ended_.contains(thread); }
  /// Of one that is held: false if it has left its loop. It runs then.
  bool still_spins(pid_t thread);
  /// It sleeps, or does something else.
  void release(pid_t thread);
  /// Of threads that are gone nothing needs to be known.
  void keep_only(const std::function<bool(pid_t thread)>& is_there);
  /// Takes note of threads that came to their end while they were looked at or held: until then
  /// their parents cannot wait for them, and others of their processes not execute a program.
  void reap();

 private:
  struct Held {
    StoppedThread stopped;
    std::vector<uint64_t> loop;  // the states that it goes through; it is in the last
  };
  struct Known {
    std::chrono::nanoseconds own_time;  // at the latest look
    std::chrono::nanoseconds pause;     // of its own time, until the next one
    size_t steps;                       // of that
  };
  std::optional<StoppedThread> stop(pid_t process, pid_t thread);
  /// The states of the loop that it is in; empty if it is in none.
  std::vector<uint64_t> loop_of(StoppedThread& stopped, size_t steps);
  void let_go(pid_t thread, StoppedThread& stopped);

  std::map<pid_t, Held> held_;
  std::map<pid_t, Known> known_;
  std::set<pid_t> ended_;  // while they were traced; or others that are not, which does no harm
};

}  // namespace rocemu
