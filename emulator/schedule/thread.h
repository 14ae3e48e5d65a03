// A thread as the scheduler sees it.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/engine/base/time.h"

namespace rocemu::schedule {

using engine::Duration;
using engine::Instant;

/// No deadline.
inline constexpr Instant kNever = Instant::max();

/// Of a number of nanoseconds since the beginning, of which INT64_MAX is kNever.
constexpr Instant instant_of(int64_t ns) {
  return Instant(Duration(ns < 0 ? 0 : ns));
}

/// How a thread polls, up to the turn in which it did so for the last time.
struct Polling {
  Instant polled_at{};       // in its latest turn
  uint32_t polls = 0;        // in that turn; 0 if it only read clocks
  Instant ready_at{};        // when the time is over that they cost
  uint64_t streak = 0;       // polls since it found something
  Instant since{};           // the first of them
  bool reads_clock = false;  // between them
};

/// A thread that waits for a turn. A thread that has just been started waits before its first
/// instruction; threads that run beside the turns are not the scheduler's.
struct Thread {
  uint32_t slot;              // the caller's name for it
  uint64_t serial;            // counts the threads of the run, from 1, in the order of their start
  Instant deadline = kNever;  // of what else it waits for
  std::optional<Polling> polling{};  // if it would go on, and found nothing where it looked
};

/// What a thread did in its turn.
struct Turn {
  bool progressed = false;      // more than to look again for what was not there
  bool polls = false;           // it would go on, and found nothing where it looked
  bool waits_for_room = false;  // to write, perhaps for a reader outside of the run
  bool is_preempted = false;    // it would go on, and its calls were used up
  uint32_t calls = 0;           // that it made; only counted if Step::calls is not 0

  /// Adds what another thread did in the same round.
  Turn& operator|=(const Turn& other) {
    progressed |= other.progressed;
    polls |= other.polls;
    waits_for_room |= other.waits_for_room;
    return *this;
  }
};

}  // namespace rocemu::schedule
