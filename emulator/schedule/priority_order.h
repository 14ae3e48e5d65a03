// The order of threads and of the NIC with `--schedule N`. Each thread has a random priority, and
// the NIC has one, too. Of those that can run, the one with the highest priority runs. There are
// two kinds of schedules:
// - Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized
//   scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010): at a few random steps,
//   the thread that runs (or the NIC) gets a priority below all others. A step of a thread is a
//   call that it makes (verbs_provider/turns); a step of the NIC is an action.
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
  /// The mean number of calls from one stop of a thread to its next. The schedules N = 1, 3, 5 and
  /// so on stop threads, and use these numbers in turn.
  static constexpr uint32_t kIntervals[] = {4, 16, 2, 64, 8, 32};
  /// The schedules N = 2, 4, 6 have the depths 1, 2 and 3, and so on again from 1. The depth is the
  /// number of ordering constraints of the bugs for which the probabilistic guarantee holds. A
  /// schedule changes priorities `depth - 1` times in each window.
  uint32_t depths = 3;
  /// The number of steps in a window. The schedules N = 2, 4, 6 use the first number, the next
  /// three even N use the second, and so on. The number of steps of a run is not known beforehand:
  /// short windows change priorities often, and long ones span a whole run.
  static constexpr uint32_t kWindows[] = {16, 64, 24, 256, 8, 32, 48, 128};
  /// A thread with a lower priority than the NIC waits for the NIC's events that are due within
  /// this time, counted from when the thread could run. It does not wait for later events, such as
  /// timers.
  Duration patience = std::chrono::microseconds(1024);
  /// The number of steps at one instant after which the thread that made the latest step gets a
  /// priority below all others. An example is a thread that repeatedly takes a lock to read a flag.
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

  /// Notes the threads that wait for a turn at the time `now`. Returns whether one of them is new.
  bool see(std::span<const Thread> threads, Instant now);
  /// Notes that an event happened that threads may see: threads that polled without success may
  /// poll again.
  void happened();
  void time_moved() { steps_at_instant_ = 0; }

  /// Returns whether a turn may be useful for the thread, because it has not polled without success
  /// since the latest event. Always returns true for a thread with Thread::polling, for which only
  /// the time decides.
  bool may_look(const Thread& thread) const;
  /// Returns the thread with the highest priority for which `is_ready` returns true; null if there
  /// is none.
  template <class IsReady>
  const Thread* first(std::span<const Thread> threads, IsReady is_ready) const {
    const Thread* first = nullptr;
    for (const Thread& thread : threads)
      if (is_ready(thread) && (first == nullptr || is_before(thread, *first))) first = &thread;
    return first;
  }
  bool is_before(const Thread& one, const Thread& other) const;
  bool is_behind_nic(const Thread& thread) const;
  /// The times of the next events other than turns, and the threads that wait for a turn
  struct Due {
    Instant now, device, timers;
    std::span<const Thread> threads;
  };
  /// Returns the latest time at which the thread continues, if it must wait for other events first;
  /// Instant::min() if it need not wait.
  Instant held_until(const Thread& thread, const Due& due) const;

  /// Returns whether another thread of `threads` could do more than poll again.
  bool could_another_run(const Thread& thread, std::span<const Thread> threads) const;
  /// Returns the number of calls after which the thread returns its turn. `is_quiet` is true if all
  /// threads have polled without success since the latest event.
  uint32_t calls_for(const Thread& thread, std::span<const Thread> threads, bool is_quiet) const;
  /// Notes the end of a turn. Returns false if the thread has made too many steps at this instant,
  /// so that time must move.
  bool turn_ended(uint64_t serial, const Turn& turn);
  void nic_acted();

  /// Returns the number of the call after which the thread was preempted, if other threads or the
  /// NIC have acted since then; otherwise 0.
  uint64_t stopped_after(const Thread& thread) const;

 private:
  /// A thread with a greater priority runs earlier.
  struct Priority {
    uint32_t level = 0;  // the lower, the later it was lowered
    uint64_t drawn = 0, serial = 0;
    auto operator<=>(const Priority&) const = default;
  };
  struct ThreadState {
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
  void draw_stop(uint64_t serial, ThreadState& state) const;
  /// Returns the number of calls of the thread until its next stop; UINT64_MAX for none.
  uint64_t calls_to_stop(uint64_t serial, const ThreadState& state) const;
  bool stops_now(uint64_t serial, const ThreadState& state) const;
  /// Counts steps. Returns whether priorities change at this step.
  bool count(uint64_t steps);

  ScheduleChoice choice_;
  std::set<Stop> stops_;
  uint32_t depth_ = 1, window_ = 0, interval_ = 0;
  std::map<uint64_t, ThreadState> threads_;  // by their serials
  Priority nic_;
  Instant now_{};
  uint64_t steps_ = 0, change_ = 0;  // the step of the next change
  uint64_t lowerings_ = 0;
  uint64_t acts_ = 0;  // turns with progress, and steps of the NIC
  uint32_t steps_at_instant_ = 0;
};

}  // namespace rocemu::schedule
