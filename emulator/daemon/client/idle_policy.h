// How a thread of the daemon waits. A pure function of what it measured, so that tests run it on a
// simulated scheduler (docs/design/waiting.md). Looking again at once gives the shortest latency,
// but keeps the processor from other threads; waking a sleeping thread takes some 2 us on the same
// processor and 20 us on another one of a virtual machine.
#pragma once

#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

struct IdleConstants {
  /// With nothing to do for so long the daemon sleeps: the pause of a program between two messages
  /// is shorter, and what that costs a machine that has other work is little.
  engine::Duration awake = std::chrono::microseconds(50);
  /// In which a peer on another processor answers what came from a client on ours.
  engine::Duration answer = std::chrono::microseconds(3);
  /// With work without end, the daemon yields that often to clients that will yield back. One that
  /// could not repost its receives for longer would run out of them: 50 us are 150 short messages,
  /// and a yield is 2 us.
  engine::Duration turn = std::chrono::microseconds(50);
  /// A yield that took longer gave the processor to a thread that keeps it for its time slice, of
  /// 700 us at least on Linux: one that looks at memory, or one with work of its own.
  engine::Duration long_yield = std::chrono::microseconds(650);
  /// So many in a row show that it is so: single ones happen while programs start.
  uint32_t long_yields = 3;
  /// For so long after one the daemon sleeps instead of yielding, since a thread that is woken runs
  /// soon. Doubled each time that this was too short.
  engine::Duration shortest_crowd = std::chrono::milliseconds(20);
  engine::Duration longest_crowd = std::chrono::seconds(1);
  /// A yield that took less let nobody in.
  engine::Duration shortest_turn = std::chrono::microseconds(1);
  /// Where messages come over a network, the next is here after less than this.
  engine::Duration pause = std::chrono::microseconds(20);
};
inline constexpr IdleConstants kIdleConstants;

class IdlePolicy {
 public:
  enum class Way {
    kLookAgain,
    kGiveWay,  // the processor: sched_yield
    kSleep,    // until somebody wakes us
  };

  /// The clients that rang not long ago.
  struct Clients {
    bool beside = false;           // some on our processor
    bool elsewhere = false;        // some on others
    bool rung_beside = false;      // the latest on our processor
    bool beside_gives_way = true;  // all on our processor yield, and not only to us
  };

  /// `busy_poll`: always looks again.
  explicit IdlePolicy(engine::Instant now, bool busy_poll = false)
      : busy_poll_(busy_poll), last_work_(now), last_turn_(now) {}

  /// A round found something to do, or a sleep ended.
  void worked(engine::Instant now) { last_work_ = now; }
  /// A sleep ended.
  void slept(engine::Instant now) { last_work_ = last_turn_ = now; }
  /// What a yield took.
  void gave_way(engine::Instant begin, engine::Instant end);

  /// Nothing more comes for now.
  bool is_idle(engine::Instant now) const { return now - last_work_ >= kIdleConstants.pause; }
  /// After a round that found something: whether others may have had to wait for their turn.
  bool is_turn_over(engine::Instant now) const {
    return !busy_poll_ && now - last_turn_ >= kIdleConstants.turn && now >= crowded_until_;
  }
  /// After a round that found nothing.
  Way next(engine::Instant now, const Clients& clients) const;

 private:
  /// There was a crowd, and for as long as it was taken to last nobody came.
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
