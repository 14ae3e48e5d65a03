// The sessions that are awake: their doorbell rings are looked at in every round. The others ring
// their eventfd first, so an idle context costs nothing. A session is in the list if, and only if,
// its Activity::awake says so.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/client/client_session.h"
#include "emulator/daemon/client/idle_policy.h"

namespace rocemu::daemon {

class AwakeSessions {
 public:
  explicit AwakeSessions(const Clock& clock) : clock_(clock) {}

  /// Makes room, so that to wake one of that number of sessions needs no memory.
  void reserve(size_t sessions);
  void wake(ClientSession& session);
  /// Takes out a session that is gone.
  void remove(const ClientSession& session);
  bool any() const { return !sessions_.empty(); }

  /// Lets sessions sleep that have been idle for `idle` or longer. One that rings its doorbell just
  /// then stays awake.
  void let_sleep(engine::Instant now, engine::Duration idle);
  /// Wakes those that sleep since the latest let_sleep() and had been busy until then: an awake
  /// daemon looks at their rings anyway.
  void wake_busy();

  // ClientSession explains the three parts of a round. Outputs of one session may wake others,
  // which then have their turn in the same round.
  bool note_doorbells();
  void take_receives();
  bool pump();

  /// Sets the processor that the daemon is on, from 1; 0 if it is not known.
  void set_processor(uint32_t processor) { processor_ = processor; }
  /// Returns where those were that rang not long ago and do not wait for an event.
  IdlePolicy::Clients recent(engine::Instant now) const;
  /// Returns how many threads yield at this moment.
  uint32_t yielding_threads() const;

 private:
  const Clock& clock_;
  uint32_t processor_ = 0;
  std::vector<ClientSession*> sessions_;
  std::vector<ClientSession*> dozing_;  // since the latest let_sleep()
  engine::Instant fell_asleep_{};
  bool rung_beside_ = false;
};

}  // namespace rocemu::daemon
