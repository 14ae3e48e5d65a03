// The order of threads and of the NIC with `--schedule N`. Each thread, and the NIC like a thread,
// has a random priority, and the one with the highest priority that can run does run. There are two
// kinds of schedules:
// - Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized
//   scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010): at a few random steps
//   the one that runs gets a priority below all others. A step of a thread is a call that it makes
//   (verbs_provider/turns); a step of the NIC is an action.
// - Random stops: each thread stops after random calls, until no other thread can run and the NIC
//   has nothing to do.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

struct PctConstants {
  /// Schedules N = 1, 3, 5 and so on stop threads. These are their mean numbers of calls from one
  /// stop of a thread to its next, used in turn.
  static constexpr uint32_t kIntervals[] = {4, 16, 2, 64, 8, 32};
  /// Schedules N = 2, 4, 6 have depth 1, 2, 3, and so on: the number of ordering constraints of the
  /// bugs for which the bound holds. A schedule has `depth - 1` changes of priority in each window.
  uint32_t depths = 3;
  /// The numbers of steps in a window. Each group of three consecutive schedules uses one window.
  /// The number of steps of a run is not known before: short windows change priorities often, and
  /// long ones span a whole run.
  static constexpr uint32_t kWindows[] = {16, 64, 24, 256, 8, 32, 48, 128};
  /// Threads with a lower priority than the NIC wait until it has nothing to do for this time, and
  /// no longer, so they do not wait for its timers.
  Duration patience = std::chrono::microseconds(1024);
  /// A thread that makes this number of steps at one instant while others could run, such as one
  /// that repeatedly takes a lock to read a flag, gets a priority below them.
  uint32_t most_steps = 4096;
};
inline constexpr PctConstants kPctConstants;

/// A call of a thread after which it is stopped
struct Stop {
  uint64_t thread = 0;  // its serial
  uint64_t call = 0;    // the number of its call, from 1
  auto operator<=>(const Stop&) const = default;
};

/// The value of `--schedule`: "N", or "N:THREAD/CALL,...".
struct ScheduleChoice {
  uint64_t number = 0;     // 0: start order, and the NIC is last
  bool has_stops = false;  // stops threads only after these calls, and otherwise when they wait
  std::vector<Stop> stops = {};

  /// Returns false for start order, which does not use a PriorityOrder.
  bool is_any() const { return number != 0 || has_stops; }
};

class PriorityOrder {
 public:
  explicit PriorityOrder(ScheduleChoice choice);

  uint32_t depth() const { return depth_; }
  uint32_t window() const { return window_; }      // 0 for a schedule of stops
  uint32_t interval() const { return interval_; }  // 0 for one without random stops

  /// Notes the threads that wait for a turn at that time. Returns whether there is a thread that it
  /// has not seen before.
  bool see(std::span<const Thread> threads, Instant now);
  /// An event happened that threads may see: those that waited may poll again.
  void happened();
  void time_moved() { steps_at_instant_ = 0; }

  /// Returns whether a turn is useful for the thread: it has not polled without success since the
  /// latest event. For a polling thread the time decides.
  bool may_look(const Thread& thread) const;
  /// Returns the first of the threads for which `is_ready` returns true; null for none.
  template <class IsReady>
  const Thread* first(std::span<const Thread> threads, IsReady is_ready) const {
    const Thread* first = nullptr;
    for (const Thread& thread : threads)
      if (is_ready(thread) && (first == nullptr || is_before(thread, *first))) first = &thread;
    return first;
  }
  bool is_before(const Thread& one, const Thread& other) const;
  bool is_behind_nic(const Thread& thread) const;
  /// Events besides turns
  struct Due {
    Instant now, device, timers;
    std::span<const Thread> threads;
  };
  /// Returns the latest time at which the thread continues, if it must wait for earlier events;
  /// else Instant::min().
  Instant held_until(const Thread& thread, const Due& due) const;

  /// Returns whether one of the waiting threads could do more than poll again.
  bool could_another_run(const Thread& thread, std::span<const Thread> threads) const;
  /// Returns the number of calls after which the thread returns its turn. With `is_quiet`, it polls
  /// again, like all others, for something that did not happen.
  uint32_t calls_for(const Thread& thread, std::span<const Thread> threads, bool is_quiet) const;
  /// Returns false if the thread has been busy for too long, so that time must move.
  bool turn_ended(uint64_t serial, const Turn& turn);
  void nic_acted();

  /// Returns the call after which the thread was preempted, if others or the NIC acted since then;
  /// else 0.
  uint64_t stopped_after(const Thread& thread) const;

 private:
  /// A thread with a greater priority runs earlier.
  struct Priority {
    uint32_t level = 0;  // the lower, the later it was lowered
    uint64_t drawn = 0, serial = 0;
    auto operator<=>(const Priority&) const = default;
  };
  struct Place {
    Priority priority;
    Instant since{};  // since when it could run
    uint64_t calls = 0;
    uint64_t next_stop = 0;                         // a count of calls; random, or 0 if not yet
    bool has_looked = false;                        // without success, since the latest event
    bool is_preempted = false, is_stopped = false;  // and had no turn since
    uint64_t acts = 0;                              // of all, at the end of its latest turn
  };

  uint64_t draw(uint64_t kind, uint64_t number) const;
  Priority initial(uint64_t serial) const;
  Priority lowered(uint64_t serial) const;
  uint64_t next_change() const;
  bool has_stops() const { return choice_.has_stops || interval_ != 0; }
  void draw_stop(uint64_t serial, Place& place) const;
  /// Returns the number of calls of the thread until its next stop; UINT64_MAX for none.
  uint64_t calls_to_stop(uint64_t serial, const Place& place) const;
  bool stops_now(uint64_t serial, const Place& place) const;
  /// Counts steps. Returns whether priorities change now.
  bool count(uint64_t steps);

  ScheduleChoice choice_;
  std::set<Stop> stops_;
  uint32_t depth_ = 1, window_ = 0, interval_ = 0;
  std::map<uint64_t, Place> threads_;  // by their serials
  Priority nic_;
  Instant now_{};
  uint64_t steps_ = 0, change_ = 0;  // the step of the next change
  uint64_t lowerings_ = 0;
  uint64_t acts_ = 0;  // turns with progress, and steps of the NIC
  uint32_t steps_at_instant_ = 0;
};

}  // namespace rocemu::schedule
