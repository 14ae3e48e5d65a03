// The order in which threads have their turns.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

class TurnOrder {
 public:
  /// Where a thread is among all threads at one instant: unlike any other's.
  struct Place {
    uint64_t drawn = 0, serial = 0;  // no thread has the serial 0
    auto operator<=>(const Place&) const = default;
  };

  /// With `schedule` 0 threads have turns in the order in which they were started. With another
  /// number the order is drawn anew, from it, each time that virtual time goes on.
  explicit TurnOrder(uint64_t schedule) : schedule_(schedule) {}

  Place place_of(const Thread& thread, Instant now) const;
  /// Returns the first of `threads` behind `place` that `is_ready`, or null.
  template <class IsReady>
  const Thread* next_after(Place place, std::span<const Thread> threads, Instant now,
                           IsReady is_ready) const {
    const Thread* next = nullptr;
    Place best;
    for (const Thread& thread : threads) {
      if (!is_ready(thread)) continue;
      const Place its = place_of(thread, now);
      if (its <= place || (next != nullptr && its > best)) continue;
      next = &thread;
      best = its;
    }
    return next;
  }

 private:
  uint64_t schedule_;
};

}  // namespace rocemu::schedule
