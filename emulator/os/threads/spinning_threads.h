// Finds and holds threads that spin: they run in a loop that cannot end by itself, since it only
// reads memory.
//
// A thread that may be spinning is run instruction by instruction. If its registers repeat the same
// states, the loop repeats forever unless something changes memory. The thread is then held: it
// does not run, and takes no processor from other threads. Whenever memory may have changed, it is
// made to run its loop once. If it leaves the loop, it is released.
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

  /// Checks whether a running thread spins, and holds it if it does. A thread is checked once it
  /// has run for a few milliseconds since the first call for it; threads that compute are then
  /// checked less and less often. Returns whether the thread is held.
  bool hold_if_it_spins(pid_t process, pid_t thread);
  bool holds(pid_t thread) const { return held_.contains(thread); }
  bool holds_any() const { return !held_.empty(); }
  /// Returns whether the thread was ordered to stop and has not done so in time. Such a thread is
  /// not asleep, and is released when it stops.
  bool is_stopping(pid_t thread) const { return ended_.contains(thread); }
  /// Makes the held thread run its loop once. Returns whether the thread is still in the loop; if
  /// not, releases it.
  bool still_spins(pid_t thread);
  /// Releases the thread if it is held.
  void release(pid_t thread);
  /// Forgets the earlier checks of threads for which `is_there` returns false.
  void keep_only(const std::function<bool(pid_t thread)>& is_there);
  /// Reaps threads that ended while they were checked or held. Until then their parents cannot wait
  /// for them, and other threads of their processes cannot execute a program.
  void reap();

 private:
  struct Held {
    StoppedThread stopped;
    std::vector<uint64_t> loop;  // the states of its loop; it is in the last one
  };
  struct Known {
    std::chrono::nanoseconds own_time;  // at the latest check
    std::chrono::nanoseconds pause;     // in its processor time, until the next check
    size_t steps;                       // of the next check
  };
  std::optional<StoppedThread> stop(pid_t process, pid_t thread);
  /// Runs up to `steps` instructions of the thread. Returns the states of the loop in which it
  /// spins; nothing if it does not spin.
  std::vector<uint64_t> loop_of(StoppedThread& stopped, size_t steps);
  void let_go(pid_t thread, StoppedThread& stopped);

  std::map<pid_t, Held> held_;
  std::map<pid_t, Known> known_;
  std::set<pid_t> ended_;  // while they were traced; others in the set do no harm
};

}  // namespace rocemu
