// Whether all threads of some processes were asleep at one instant.
//
// A thread is looked at twice. If it was asleep both times and has not been switched from in
// between, it was asleep all the while; and between the end of the first look at all of them and
// the beginning of the second there is an instant at which that holds for every one.
//
// "State: S" alone does not say that a thread sleeps: it says so before it looks whether it has to,
// and wait4(2) reaps a child in that state. So the second look asks where it sleeps, which the
// kernel does not tell of one that has a processor or waits for one.
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
  /// With an ancestor, all its descendants but ourselves are looked at too. `parents_wait`: the
  /// parent of a process that ended wakes up soon, and is waited for. With `spinning`, threads that
  /// spin are held by it, and count as asleep. Not on the real clock, where a thread that polls may
  /// look like one.
  explicit Quiescence(std::optional<pid_t> ancestor, bool parents_wait = true,
                      SpinningThreads* spinning = nullptr);

  /// Looks at these processes and their descendants.
  bool is_quiet(const std::vector<pid_t>& clients);

  /// Those that were looked at last.
  const std::set<pid_t>& processes() const { return processes_; }

  /// Somebody was not asleep when is_quiet() looked last.
  bool anyone_runs() const;

  /// Those of them that have had the processor for kOwnTime since the first such question of this
  /// wait, or `all`: "thread poller (tid 12) of pid 11"; empty if there was none. They are not
  /// watched any more until they have slept. A thread that only waits for a processor is not given
  /// up.
  std::string give_up_on_running(bool all);
  void begin_wait();

  /// Everybody who was not asleep then has had the processor for so long since the first such
  /// question of this wait.
  bool everyone_had(std::chrono::nanoseconds time);

 private:
  struct Thread {
    std::string switches;  // the lines of /proc that count how often it was switched from
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
  std::set<pid_t> processes_;                                          // of the look in progress
  std::vector<std::pair<pid_t, pid_t>> running_;                       // process, thread
  std::set<pid_t> ignored_;                                            // threads
  SpinningThreads* spinning_;
  std::chrono::steady_clock::time_point waiting_since_;
  std::map<pid_t, std::chrono::nanoseconds> processor_time_;  // of threads, at that question
};

}  // namespace rocemu::daemon
