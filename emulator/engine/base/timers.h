// The engine's timers: three for each QP, and a heap with an entry for each running timer. A
// canceled timer leaves its entry in the heap until no earlier entry is left.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine {

enum class TimerKind : uint8_t {
  kAck,   // no acknowledgement within the local ACK timeout: go back and retransmit
  kRnr,   // the responder's RNR delay is over: retransmit
  kPace,  // congestion control allows the next packet
};
inline constexpr size_t kTimerKinds = 3;

/// A timer of a QP. Its entry in the heap may be earlier than `deadline`, so that restarting the
/// timer for every packet takes a store instead of a heap operation.
struct Timer {
  std::optional<Instant> deadline;
  std::optional<Instant> queued;
};
using TimerSet = std::array<Timer, kTimerKinds>;

class TimerQueue {
 public:
  struct Entry {
    Instant at;
    QpNumber qp;
    TimerKind kind;
    auto operator<=>(const Entry&) const = default;
  };

  void set(QpNumber qp, TimerSet& timers, TimerKind kind, Instant at);
  static void cancel(TimerSet& timers, TimerKind kind) {
    timers[static_cast<size_t>(kind)].deadline.reset();
  }
  static bool running(const TimerSet& timers, TimerKind kind) {
    return timers[static_cast<size_t>(kind)].deadline.has_value();
  }

  /// Returns the running timer with the earliest deadline; nothing if no timer runs.
  /// `timers_of(QpNumber)` returns a TimerSet *, or nullptr for a QP that was destroyed. Equal
  /// deadlines are ordered by QP number.
  template <class TimersOf>
  std::optional<Entry> next(TimersOf timers_of) {
    while (!heap_.empty()) {
      const Entry top = heap_.front();
      TimerSet* timers = timers_of(top.qp);
      Timer* timer = timers != nullptr ? &(*timers)[static_cast<size_t>(top.kind)] : nullptr;
      if (timer != nullptr && timer->queued == top.at) {
        if (timer->deadline == top.at) return top;
        timer->queued.reset();
        pop();
        if (timer->deadline) set(top.qp, *timers, top.kind, *timer->deadline);
      } else {
        pop();
      }
    }
    return std::nullopt;
  }

  /// Removes the entry that next() returned, and stops its timer.
  void expire(const Entry& entry, TimerSet& timers);

 private:
  void pop();

  std::vector<Entry> heap_;  // smallest first
};

}  // namespace rocemu::engine
