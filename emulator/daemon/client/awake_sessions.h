// The awake sessions, whose doorbell rings are polled in every round. The clients of the other
// sessions write their eventfd first, so an idle context costs nothing. A session is in the list
// if, and only if, its Activity::awake says so.
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

  /// Reserves memory, so that waking one of that number of sessions needs none.
  void reserve(size_t sessions);
  void wake(ClientSession& session);
  /// Removes a session that has ended.
  void remove(const ClientSession& session);
  bool any() const { return !sessions_.empty(); }

  /// Lets sessions sleep that have been idle for `idle` or longer. A session whose client rings its
  /// doorbell at that moment stays awake.
  void let_sleep(engine::Instant now, engine::Duration idle);
  /// Wakes the sessions that sleep since the latest let_sleep() and were busy until then: an awake
  /// daemon polls their rings anyway.
  void wake_busy();

  // ClientSession explains the three parts of a round. Outputs of one session can wake other
  // sessions, which then take part in the same round.
  bool note_doorbells();
  void take_receives();
  bool pump();

  /// Sets the processor of the daemon, counted from 1; 0 if it is not known.
  void set_processor(uint32_t processor) { processor_ = processor; }
  /// Returns the processors of the clients that rang recently and do not wait for an event.
  IdlePolicy::Clients recent(engine::Instant now) const;
  /// Returns the number of threads that are yielding at this moment.
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
