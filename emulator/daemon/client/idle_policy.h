// How a thread of the daemon waits. The policy is a pure function of measurements, so that tests
// can run it on a simulated scheduler (docs/design/waiting.md). Polling again at once gives the
// shortest latency, but keeps the processor from other threads; waking a sleeping thread takes
// about 2 us on the same processor and 20 us on another one of a virtual machine.
#pragma once

#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

struct IdleConstants {
  /// The idle time after which the daemon sleeps. The pause of a program between two messages is
  /// shorter, and the cost for a machine with other work is small.
  engine::Duration awake = std::chrono::microseconds(50);
  /// The time in which a peer on another processor replies to a message of a client on the daemon's
  /// processor.
  engine::Duration answer = std::chrono::microseconds(3);
  /// The interval at which a busy daemon yields to clients that will yield back. A client that
  /// could not repost its receives for longer would run out of them: in 50 us there are 150 short
  /// messages, and a yield takes 2 us.
  engine::Duration turn = std::chrono::microseconds(50);
  /// The time above which a yield is long: it gave the processor to a thread that keeps it for its
  /// time slice, at least 700 us on Linux. That is a thread that polls memory, or one with other
  /// work.
  engine::Duration long_yield = std::chrono::microseconds(650);
  /// The number of long yields in a row that are needed, since single ones happen while programs
  /// start.
  uint32_t long_yields = 3;
  /// The time after these long yields in which the daemon sleeps instead of yielding, since a
  /// thread that is woken runs soon. It is doubled each time that it was too short.
  engine::Duration shortest_crowd = std::chrono::milliseconds(20);
  engine::Duration longest_crowd = std::chrono::seconds(1);
  /// The time below which a yield has not let another thread run.
  engine::Duration shortest_turn = std::chrono::microseconds(1);
  /// The time within which the next message arrives if messages arrive over a network.
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

  /// The clients that rang recently
  struct Clients {
    bool beside = false;           // some are on the daemon's processor
    bool elsewhere = false;        // some are on other processors
    bool rung_beside = false;      // the latest is on the daemon's processor
    bool beside_gives_way = true;  // all on our processor yield, not only to us
  };

  /// If `busy_poll` is true, the daemon always polls again.
  explicit IdlePolicy(engine::Instant now, bool busy_poll = false)
      : busy_poll_(busy_poll), last_work_(now), last_turn_(now) {}

  /// Notes that a round found something to do, or that a sleep ended.
  void worked(engine::Instant now) { last_work_ = now; }
  /// Notes that a sleep ended.
  void slept(engine::Instant now) { last_work_ = last_turn_ = now; }
  /// Notes that a yield began and ended at these times.
  void gave_way(engine::Instant begin, engine::Instant end);

  /// Returns whether no more work arrives for now.
  bool is_idle(engine::Instant now) const { return now - last_work_ >= kIdleConstants.pause; }
  /// Must be called after a round that found something. Returns whether other threads may have had
  /// to wait for their turn.
  bool is_turn_over(engine::Instant now) const {
    return !busy_poll_ && now - last_turn_ >= kIdleConstants.turn && now >= crowded_until_;
  }
  /// Must be called after a round that found nothing. Returns what to do next.
  Way next(engine::Instant now, const Clients& clients) const;

 private:
  /// Returns whether there were long yields, and no client rang for as long as they were assumed to
  /// last.
  bool is_forgotten(engine::Instant now) const {
    return crowd_ != engine::Duration(0) && now - crowded_until_ > crowd_;
  }

  bool busy_poll_;
  engine::Instant last_work_, last_turn_;
  engine::Instant crowded_until_{};
  engine::Duration crowd_{};
  uint32_t long_yields_ = 0;  // in a row
};

}  // namespace rocemu::daemon
