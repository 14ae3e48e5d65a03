#include "emulator/daemon/client/idle_policy.h"

#include <algorithm>

namespace rocemu::daemon {

IdlePolicy::Way IdlePolicy::next(engine::Instant now, const Clients& clients) const {
  if (busy_poll_) return Way::kLookAgain;
  const engine::Duration idle = now - last_work_;
  if (idle >= kIdleConstants.awake || now < crowded_until_) return Way::kSleep;
  if (clients.beside && clients.elsewhere && !clients.beside_gives_way) {
    // The client's thread on the daemon's processor may be polling memory for the rest of its time
    // slice. A daemon that yields must wait for that thread; a daemon that sleeps preempts it when
    // it is woken. Therefore the daemon sleeps. If the latest ring came from this processor, the
    // daemon first polls for a moment.
    return clients.rung_beside && idle < kIdleConstants.answer ? Way::kLookAgain : Way::kSleep;
  }
  return Way::kGiveWay;
}

void IdlePolicy::gave_way(engine::Instant begin, engine::Instant end) {
  const engine::Duration took = end - begin;
  last_yield_ = end;
  if (took > kIdleConstants.long_yield) {
    if (++long_yields_ < kIdleConstants.long_yields) return;
    crowd_ = std::clamp(2 * crowd_, kIdleConstants.shortest_crowd, kIdleConstants.longest_crowd);
    crowded_until_ = end + crowd_;
  } else if (took >= kIdleConstants.shortest_yield || is_forgotten(begin)) {
    crowd_ = engine::Duration(0);  // the other thread yielded too, or none ran for long
    long_yields_ = 0;
  }
}

}  // namespace rocemu::daemon
