// A thread from the scheduler's point of view
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/time.h"

namespace rocemu::schedule {

using engine::Duration;
using engine::Instant;

/// No deadline
inline constexpr Instant kNever = Instant::max();

/// Returns the instant that is this number of nanoseconds after Instant 0; kNever for INT64_MAX.
constexpr Instant instant_of(int64_t ns) {
  return Instant(Duration(ns < 0 ? 0 : ns));
}

/// The history of a thread's polls, up to its latest turn in which it polled
struct Polling {
  Instant polled_at{};       // in its latest turn
  uint32_t polls = 0;        // in that turn; 0 if it only read clocks
  Instant ready_at{};        // when the time that they cost is over
  uint64_t streak = 0;       // polls since it found something
  Instant since{};           // the first of them
  bool reads_clock = false;  // between them
};

/// A thread that waits for a turn. A new thread waits before its first instruction. Threads that
/// run without turns are unknown to the scheduler.
struct Thread {
  uint32_t slot;                     // the caller's name for it
  uint64_t serial;                   // the number of the thread in the run, from 1, in start order
  Instant deadline = kNever;         // of anything else for which it waits
  bool is_blocked = false;           // true if its wait cannot have ended since its latest turn
  std::optional<Polling> polling{};  // if it would continue, but its polls found nothing
};

/// The result of a thread's turn
struct Turn {
  bool progressed = false;      // more than empty polls
  bool polls = false;           // it would continue, but its polls found nothing
  bool waits_for_room = false;  // to write, perhaps for a reader outside of the run
  bool is_preempted = false;    // it would continue, but its calls were used up
  uint32_t calls = 0;           // number of its calls; only counted if Step::calls is not 0

  /// Adds the result of another thread's turn in the same round.
  Turn& operator|=(const Turn& other) {
    progressed |= other.progressed;
    polls |= other.polls;
    waits_for_room |= other.waits_for_room;
    return *this;
  }
};

}  // namespace rocemu::schedule
