// Checks whether all threads of some processes were asleep at the same instant.
//
// Each thread is checked twice. If it was asleep both times and there was no context switch in
// between, it was asleep all the time. So there is an instant at which all threads were asleep:
// between the end of the first check of all threads and the beginning of the second.
//
// "State: S" alone does not prove that a thread sleeps: a thread sets this state before it checks
// whether it must sleep, and wait4(2) reaps a child in this state. Therefore the second check also
// reads in which kernel function the thread sleeps. The kernel does not report a function for a
// thread that has a processor or waits for one.
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
  /// If there is an ancestor, all its descendants except the daemon are also checked. If
  /// `parents_wait` is true, the parent of a process that has ended is expected to wake up soon,
  /// and the check waits for it. If `spinning` is not null, it holds threads that spin, which then
  /// count as asleep. `spinning` must be null on the real clock, where a thread that polls can look
  /// like one that spins.
  explicit Quiescence(std::optional<pid_t> ancestor, bool parents_wait = true,
                      SpinningThreads* spinning = nullptr);

  /// Returns whether all threads of these processes and their descendants were asleep at the same
  /// instant.
  bool is_quiet(const std::vector<pid_t>& clients);

  /// Returns the processes that the latest check examined.
  const std::set<pid_t>& processes() const { return processes_; }

  /// Returns whether any thread was not asleep at the latest is_quiet().
  bool anyone_runs() const;

  /// Stops waiting for threads that compute, until they have slept. These are the running threads
  /// that have had the processor for kOwnTime since the first such call in this wait or, if `all`
  /// is true, every running thread. Returns their description, such as "thread poller (tid 12) of
  /// pid 11"; an empty text if there are none. A thread that only waits for a processor is still
  /// waited for.
  std::string give_up_on_running(bool all);
  /// Stops waiting for this thread, until it has slept.
  void give_up_on(pid_t thread) { ignored_.insert(thread); }
  void begin_wait();

  /// Returns whether each of the threads that were not asleep at the latest is_quiet() has had the
  /// processor for `time` since the first call of this function in this wait.
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
