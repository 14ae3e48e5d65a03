// The order in which threads have their turns without `--schedule`: start order
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

class TurnOrder {
 public:
  /// The position of a thread among all threads, which is unique.
  struct Position {
    uint64_t serial = 0;  // no thread has the serial 0
    auto operator<=>(const Position&) const = default;
  };

  static Position position_of(const Thread& thread) { return {thread.serial}; }
  /// Returns the first ready thread after `position`, for which `is_ready` returns true; null if
  /// there is none.
  template <class IsReady>
  static const Thread* next_after(Position position, std::span<const Thread> threads,
                                  IsReady is_ready) {
    const Thread* next = nullptr;
    Position best;
    for (const Thread& thread : threads) {
      if (!is_ready(thread)) continue;
      const Position its = position_of(thread);
      if (its <= position || (next != nullptr && its > best)) continue;
      next = &thread;
      best = its;
    }
    return next;
  }
};

}  // namespace rocemu::schedule
