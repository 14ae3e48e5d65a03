// A thread as the scheduler sees it.
#pragma once

#include <cstdint>

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

/// A thread that waits for a turn. A thread that has just been started waits before its first
/// instruction; threads that run beside the turns are not the scheduler's.
struct Thread {
  uint32_t slot;              // the caller's name for it
  uint64_t serial;            // counts the threads of the run, from 1, in the order of their start
  Instant deadline = kNever;  // of what else it waits for
};

/// What a thread did in its turn.
struct Turn {
  bool progressed = false;      // more than to look again for what was not there
  bool polls = false;           // it would go on, and found nothing where it looked
  bool polls_memory = false;    // and that may be elsewhere than in a completion queue
  bool reads_clock = false;     // and it read a clock
  bool waits_for_room = false;  // to write, perhaps for a reader outside of the run

  /// Adds what another thread did in the same round.
  Turn& operator|=(const Turn& other) {
    progressed |= other.progressed;
    polls |= other.polls;
    polls_memory |= other.polls_memory;
    reads_clock |= other.reads_clock;
    waits_for_room |= other.waits_for_room;
    return *this;
  }
};

}  // namespace rocemu::schedule
