// The order of threads and of the NIC with `--schedule N`. Each thread, and the NIC as one of them,
// has a random priority, and the one with the highest priority that can run does. There are two
// kinds of schedules:
// - Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A randomized
//   scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010): at a few random steps
//   the one that runs gets a priority below all others. A step of a thread is a call that it makes
//   (verbs_provider/turns); a step of the NIC is something that it does.
// - Random stops: each thread stops after random calls of its own, until no other can run and the
//   NIC has nothing to do.
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
  /// Schedules N = 1, 3, 5 and so on stop threads. The mean number of calls from one stop of a
  /// thread to its next, in turn.
  static constexpr uint32_t kIntervals[] = {4, 16, 2, 64, 8, 32};
  /// Schedules N = 2, 4, 6 have depth 1, 2, 3, and so on: the number of ordering constraints
  /// of the bugs for which the bound holds. A schedule has `depth - 1` changes of priority in each
  /// window.
  uint32_t depths = 3;
  /// The numbers of steps in a window. Every three schedules in a row have the same window, and the
  /// next three the next one. The number of steps of a run is not known before: short windows
  /// change priorities often, long ones hold a whole run.
  static constexpr uint32_t kWindows[] = {16, 64, 24, 256, 8, 32, 48, 128};
  /// Threads of a lower priority than the NIC wait until it has nothing to do for that long, and no
  /// longer than that: its timers are not waited for.
  Duration patience = std::chrono::microseconds(1024);
  /// A thread that makes this number of steps at one instant while others could run, as one that
  /// takes a lock again and again to look at a flag, gets a priority below them.
  uint32_t most_steps = 4096;
};
inline constexpr PctConstants kPctConstants;

/// A call of a thread after which it is stopped.
struct Stop {
  uint64_t thread = 0;  // its serial
  uint64_t call = 0;    // counts its calls, from 1
  auto operator<=>(const Stop&) const = default;
};

/// What `--schedule` says: "N", or "N:THREAD/CALL,...".
struct ScheduleChoice {
  uint64_t number = 0;  // 0: start order, and the NIC is last
  bool has_stops =
      false;  // threads are stopped after these calls only, and otherwise when they wait
  std::vector<Stop> stops = {};

  /// Returns false for the ordinary order, which is not a PriorityOrder's.
  bool is_any() const { return number != 0 || has_stops; }
};

class PriorityOrder {
 public:
  explicit PriorityOrder(ScheduleChoice choice);

  uint32_t depth() const { return depth_; }
  uint32_t window() const { return window_; }      // 0 for a schedule of stops
  uint32_t interval() const { return interval_; }  // 0 for one without random stops

  /// These threads wait for a turn at that time. Returns whether there is one that it has not seen.
  bool see(std::span<const Thread> threads, Instant now);
  /// Something happened that threads may see: those that waited may look again.
  void happened();
  void time_moved() { steps_at_instant_ = 0; }

  /// Returns whether it is of use to give the thread a turn: it has not looked in vain since
  /// something happened. Of one that polls the time decides.
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
  /// What may happen besides turns.
  struct Due {
    Instant now, device, timers;
    std::span<const Thread> threads;
  };
  /// Returns when the thread goes on at the latest, if it has to wait for what is due before; else
  /// Instant::min().
  Instant held_until(const Thread& thread, const Due& due) const;

  /// Returns whether one of the threads that wait does not only look again.
  bool could_another_run(const Thread& thread, std::span<const Thread> threads) const;
  /// Returns the number of calls after which the thread gives its turn back. `is_quiet`: it looks
  /// again, as all others have, for what did not happen.
  uint32_t calls_for(const Thread& thread, std::span<const Thread> threads, bool is_quiet) const;
  /// Returns false if the thread has been busy for too long, so that time has to move.
  bool turn_ended(uint64_t serial, const Turn& turn);
  void nic_acted();

  /// Returns the call after which the thread was preempted, if others or the NIC did something
  /// since then; else 0.
  uint64_t stopped_after(const Thread& thread) const;

 private:
  /// The greater it is, the earlier its thread runs.
  struct Priority {
    uint32_t level = 0;  // the lower, the later it was lowered
    uint64_t drawn = 0, serial = 0;
    auto operator<=>(const Priority&) const = default;
  };
  struct Place {
    Priority priority;
    Instant since{};  // when it could run
    uint64_t calls = 0;
    uint64_t next_stop = 0;                         // a count of calls; drawn, or 0 if not yet
    bool has_looked = false;                        // in vain, since something happened
    bool is_preempted = false, is_stopped = false;  // and has had no turn since
    uint64_t acts = 0;                              // of all, at the end of its latest turn
  };

  uint64_t draw(uint64_t kind, uint64_t number) const;
  Priority initial(uint64_t serial) const;
  Priority lowered(uint64_t serial) const;
  uint64_t next_change() const;
  bool has_stops() const { return choice_.has_stops || interval_ != 0; }
  void draw_stop(uint64_t serial, Place& place) const;
  /// Returns the number of calls of the thread up to its next stop; UINT64_MAX for none.
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
  uint64_t acts_ = 0;  // turns in which a thread did something, and steps of the NIC
  uint32_t steps_at_instant_ = 0;
};

}  // namespace rocemu::schedule
