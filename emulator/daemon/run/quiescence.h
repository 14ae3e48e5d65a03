// Checks whether all threads of some processes were asleep at one instant.
//
// Each thread is checked twice. If it was asleep both times and was not switched in between, it was
// asleep all the time. Then there is an instant, between the end of the first check of all threads
// and the beginning of the second, at which all of them were asleep.
//
// "State: S" alone does not prove that a thread sleeps: a thread sets this state before it checks
// whether it must sleep, and wait4(2) reaps a child in this state. The second check therefore also
// reads where the thread sleeps, which the kernel does not report for a thread that has a processor
// or waits for one.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulator/os/threads/spinning_threads.h"

namespace rocemu::daemon {

class Quiescence {
 public:
  /// With an ancestor, all its descendants except the daemon are checked too. With `parents_wait`,
  /// the parent of a process that ended is expected to wake up soon, and is waited for. With
  /// `spinning`, spinning threads are held by it, and count as asleep; this is not for the real
  /// clock, where a thread that polls can look like a spinning one.
  explicit Quiescence(std::optional<pid_t> ancestor, bool parents_wait = true,
                      SpinningThreads* spinning = nullptr);

  /// Checks these processes and their descendants.
  bool is_quiet(const std::vector<pid_t>& clients);

  /// Returns the processes of the latest check.
  const std::set<pid_t>& processes() const { return processes_; }

  /// Returns whether a thread was not asleep at the latest is_quiet().
  bool anyone_runs() const;

  /// Stops watching running threads until they have slept: those that had the processor for
  /// kOwnTime since the first such call in this wait, or with `all` every running thread. Returns a
  /// description such as "thread poller (tid 12) of pid 11", or an empty text if there was none. A
  /// thread that only waits for a processor is still watched.
  std::string give_up_on_running(bool all);
  void begin_wait();

  /// Returns whether each of the threads that were not asleep at the latest is_quiet() has had the
  /// processor for that time since the first such call in this wait.
  bool everyone_had(std::chrono::nanoseconds time);

 private:
  struct Thread {
    std::string switches;  // the lines of /proc that count the thread's context switches
    std::vector<pid_t> children;
  };
  using Look = std::map<pid_t, Thread>;  // by thread

  enum class Proof { kState, kPlace };

  bool is_asleep(pid_t thread, char state, bool runnable);
  bool waits_long() const;
  bool spins(pid_t process, pid_t thread, Proof proof);
  void look(const std::vector<pid_t>& clients, Proof proof);
  void look_at(pid_t process, std::vector<pid_t>& more, Proof proof);

  std::optional<pid_t> ancestor_;
  bool parents_wait_;
  Look last_, now_;
  bool all_asleep_ = false;
  std::map<pid_t, std::chrono::steady_clock::time_point> dead_since_;  // by thread
  std::set<pid_t> processes_;                                          // of the check in progress
  std::vector<std::pair<pid_t, pid_t>> running_;                       // process, thread
  std::set<pid_t> ignored_;                                            // threads
  SpinningThreads* spinning_;
  std::chrono::steady_clock::time_point waiting_since_;
  std::map<pid_t, std::chrono::nanoseconds> processor_time_;  // of threads, at that call
};

}  // namespace rocemu::daemon
