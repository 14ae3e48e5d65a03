// The awake sessions, whose doorbell rings the daemon polls in every round. The clients of the
// other sessions write to their eventfd when they ring, so an idle context costs nothing. A session
// is in this list if, and only if, its Activity::awake is true.
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

  /// Reserves memory for this number of sessions, so that waking one of them allocates none.
  void reserve(size_t sessions);
  void wake(ClientSession& session);
  /// Removes a session that has ended.
  void remove(const ClientSession& session);
  bool any() const { return !sessions_.empty(); }

  /// Lets the sessions sleep that have been idle for `idle` or longer. If the client of one of them
  /// rings its doorbell at that moment, the session stays awake.
  void let_sleep(engine::Instant now, engine::Duration idle);
  /// Wakes the sessions that the latest let_sleep() put to sleep although their clients were busy.
  /// The daemon is awake anyway, so polling their rings costs little.
  void wake_busy();

  // The following functions are the three parts of a round, which ClientSession explains. Outputs
  // for one session can wake other sessions, which then take part in the same round.
  bool note_doorbells();
  void take_receives();
  bool pump();

  /// Sets the number of the processor on which the daemon runs, counted from 1; 0 means that it is
  /// not known.
  void set_processor(uint32_t processor) { processor_ = processor; }
  /// Describes the processors of the clients that rang recently and do not wait for an event.
  IdlePolicy::Clients recent(engine::Instant now) const;
  /// Returns the number of the clients' threads that are yielding at this moment.
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
