// What a thread of the daemon does after a round that found nothing to do. Looking again at once
// gives the shortest latency, but keeps the processor from other threads; waking a sleeping thread
// takes some 2 us on the same processor and 20 us on another one of a virtual machine.
#pragma once

#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class IdlePolicy {
 public:
  enum class Way {
    kLookAgain,
    kGiveWay,  // the processor: sched_yield
    kSleep,    // until somebody wakes us
  };

  /// Where those are that rang not long ago.
  struct Clients {
    bool both_sides;   // some on our processor and some on others
    bool rung_beside;  // the latest on our processor
  };

  explicit IdlePolicy(engine::Instant now) : last_work_(now) {}

  /// A round found something to do, or a sleep ended.
  void worked(engine::Instant now) { last_work_ = now; }
  /// Nothing more comes for now.
  bool is_idle(engine::Instant now) const;
  Way next(engine::Instant now, const Clients& clients) const;
  /// What a yield took.
  void gave_way(engine::Instant begin, engine::Instant end);

 private:
  engine::Instant last_work_;
  engine::Instant crowded_until_{};
  engine::Duration crowd_{};
};

}  // namespace rocemu::daemon
