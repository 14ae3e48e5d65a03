// Decides how a thread of the daemon waits. The policy is a pure function of measurements, so that
// tests can run it on a simulated scheduler (docs/design/waiting.md). Polling again at once gives
// the shortest latency, but keeps the processor from other threads. Waking a sleeping thread takes
// about 2 us on the same processor, and 20 us on another processor of a virtual machine.
#pragma once

#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

struct IdleConstants {
  /// The idle time after which the daemon sleeps. It is longer than the pause of a program between
  /// two messages, but short enough to cost a machine with other work little.
  engine::Duration awake = std::chrono::microseconds(50);
  /// The time within which a peer on another processor replies to a message from a client on the
  /// daemon's processor.
  engine::Duration answer = std::chrono::microseconds(3);
  /// The interval at which a busy daemon yields to clients that yield, too. A client that could not
  /// repost its receives for much longer would run out of them: 150 short messages arrive in 50 us.
  /// A yield takes 2 us.
  engine::Duration yield_interval = std::chrono::microseconds(50);
  /// The duration above which a yield counts as long. After such a yield, another thread has used
  /// its whole time slice, which is at least 700 us on Linux: it polls memory, or does other work.
  engine::Duration long_yield = std::chrono::microseconds(650);
  /// The number of consecutive long yields after which the daemon sleeps instead of yielding.
  /// Single long yields happen while programs start.
  uint32_t long_yields = 3;
  /// The shortest and the longest time for which the daemon sleeps instead of yielding after too
  /// many long yields, because a thread that is woken runs soon. The time is doubled if long yields
  /// follow again.
  engine::Duration shortest_crowd = std::chrono::milliseconds(20);
  engine::Duration longest_crowd = std::chrono::seconds(1);
  /// The duration below which a yield has not let another thread run.
  engine::Duration shortest_yield = std::chrono::microseconds(1);
  /// The time without work after which no further message is expected: over a network, the next
  /// message usually arrives within this time.
  engine::Duration pause = std::chrono::microseconds(20);
};
inline constexpr IdleConstants kIdleConstants;

class IdlePolicy {
 public:
  enum class Way {
    kLookAgain,
    kGiveWay,  // yields the processor by sched_yield
    kSleep,    // until the daemon is woken
  };

  /// The processors of the clients that rang recently
  struct Clients {
    bool beside = false;           // some are on the daemon's processor
    bool elsewhere = false;        // some are on other processors
    bool rung_beside = false;      // the latest is on the daemon's processor
    bool beside_gives_way = true;  // all on our processor yield, not only to us
  };

  /// If `busy_poll` is true, the daemon always polls again.
  explicit IdlePolicy(engine::Instant now, bool busy_poll = false)
      : busy_poll_(busy_poll), last_work_(now), last_yield_(now) {}

  /// Notes that a round found something to do.
  void worked(engine::Instant now) { last_work_ = now; }
  /// Notes that a sleep of the daemon ended.
  void slept(engine::Instant now) { last_work_ = last_yield_ = now; }
  /// Notes that a yield began and ended at these times.
  void gave_way(engine::Instant begin, engine::Instant end);

  /// Returns whether no further work is expected for now.
  bool is_idle(engine::Instant now) const { return now - last_work_ >= kIdleConstants.pause; }
  /// Returns whether the daemon should yield although it is busy, since other threads may have
  /// waited for the processor. Must be called after a round that found something to do.
  bool must_yield(engine::Instant now) const {
    return !busy_poll_ && now - last_yield_ >= kIdleConstants.yield_interval &&
           now >= crowded_until_;
  }
  /// Returns how to wait after a round that found nothing to do.
  Way next(engine::Instant now, const Clients& clients) const;

 private:
  /// Returns whether the latest long yields are too old to matter: the time for which the daemon
  /// slept instead of yielding has ended, and as much time has passed since then.
  bool is_forgotten(engine::Instant now) const {
    return crowd_ != engine::Duration(0) && now - crowded_until_ > crowd_;
  }

  bool busy_poll_;
  engine::Instant last_work_, last_yield_;
  engine::Instant crowded_until_{};
  engine::Duration crowd_{};
  uint32_t long_yields_ = 0;  // in a row
};

}  // namespace rocemu::daemon
