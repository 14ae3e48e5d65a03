// All sessions of the daemon, and what is done for all of them: a round, waking those that wait,
// and the end of those that have ended.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/client/awake_sessions.h"
#include "emulator/daemon/client/client_session.h"
#include "emulator/daemon/client/poller_count.h"
#include "emulator/daemon/client/silent_connections.h"

namespace rocemu::daemon {

class SessionTable : public SessionOwner {
 public:
  /// `processors`: how many the daemon may run on; 0 if that is not known.
  explicit SessionTable(const Clock& clock, size_t processors = 1)
      : clock_(clock), awake_(clock), pollers_(processors) {}

  engine::ClientId next_id() { return engine::ClientId{next_id_++}; }
  void add(std::unique_ptr<ClientSession> session);
  ClientSession* find(engine::ClientId id);
  CompletionQueue* find_cq(engine::ClientId client, engine::CqId cq);

  void wake(ClientSession& session) override { awake_.wake(session); }
  void ended(ClientSession& session) override { ended_.push_back(session.id()); }
  void destroyed() override { ++destroyed_; }
  void attached(ClientSession& session) override { silent_.remove(session); }
  ClientSession* find_by_client_end(const FileId& client_end) override;
  uint32_t round() const override { return round_; }
  uint32_t asked_for() const override { return asked_for_; }
  uint32_t pollers_per_processor() const override { return pollers_.per_processor(); }

  AwakeSessions& awake() { return awake_; }
  SilentConnections& silent() { return silent_; }

  /// Somebody waits for more completions in that CQ than there are, and is to be woken when no more
  /// come.
  void wake_when_idle(engine::ClientId client, engine::CqId cq) {
    waiting_.emplace_back(client, cq);
  }
  /// No more come for now.
  void wake_waiting();
  /// Wakes all who sleep because a poll found nothing, whatever they wait for. The number of CQs of
  /// the client that has most of them, among those with such sleepers; 0 if nobody slept.
  size_t wake_pollers();
  /// Completions that clients say they have taken, of all CQs there are; another number after some
  /// more.
  uint32_t completions_taken() const;
  /// Handles the doorbells of all awake sessions; true if there were any.
  bool pump();
  /// Hands over what has been posted to receive queues by now, and nothing else.
  void take_receives();
  /// Handles all doorbells of all sessions, in an order that does not depend on which came first;
  /// true if there were any.
  bool pump_in_order();
  /// On a virtual clock: lets all clients look again for what they wait for.
  void begin_round();
  /// For all clients, those that come as well.
  void set_asked_for(uint32_t operations);
  /// Counts the threads that wait by yielding, and tells all clients now and then.
  void count_pollers(engine::Instant now);

  /// Detaches and destroys the sessions that have ended, and goes on with what is left of those
  /// that had very much. True if there were any.
  bool reap(EnginePort& engine, ProcessMemory& memory);

  /// That is to go on.
  bool is_releasing() const { return !remains_.empty(); }

  /// Objects that clients have destroyed, ever.
  uint64_t objects_destroyed() const { return destroyed_; }
  /// Gives back the memory of queues that are gone.
  void shrink();

  /// In the order of their ids.
  std::vector<const ClientSession*> list() const;

 private:
  const Clock& clock_;
  uint32_t next_id_ = 1;
  uint32_t round_ = 0;
  uint32_t asked_for_ = 0;
  std::unordered_map<engine::ClientId, std::unique_ptr<ClientSession>> sessions_;
  AwakeSessions awake_;
  SilentConnections silent_;
  PollerCount pollers_;
  std::vector<std::pair<engine::ClientId, engine::CqId>> waiting_;  // for completions
  std::vector<engine::ClientId> ended_;
  std::deque<ClientQueues> remains_;  // of clients that are gone
  uint64_t destroyed_ = 0;
};

}  // namespace rocemu::daemon
