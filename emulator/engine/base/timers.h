// The engine's timers: three for each QP, and a heap that only holds those that run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine {

enum class TimerKind : uint8_t {
  kAck,   // nothing acknowledged for the local ACK timeout: go back and send again
  kRnr,   // the responder's RNR delay is over: send again
  kPace,  // congestion control allows the next packet
};
inline constexpr size_t kTimerKinds = 3;

/// Kept in each QP. The heap's entry may lag behind `deadline`: re-arming a timer on every packet
/// then costs a store, not a heap operation.
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

  /// The next timer that is due first. `timers_of(QpNumber)` gives a TimerSet *, or nullptr for a
  /// QP that is gone. Equal deadlines come by QP number.
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

  /// Takes the entry that next() gave: the timer no longer runs.
  void expire(const Entry& entry, TimerSet& timers);

 private:
  void pop();

  std::vector<Entry> heap_;  // smallest first
};

}  // namespace rocemu::engine
