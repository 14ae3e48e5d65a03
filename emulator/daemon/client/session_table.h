// All sessions of the daemon, and the operations on all of them: running a round, waking sessions
// and threads that wait, and removing sessions that have ended.
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
  /// `processors` is the number of processors on which the daemon may run; 0 if it is not known.
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

  /// Wakes all threads that sleep after an empty poll. Returns the largest number of CQs of any
  /// client that has such a thread; 0 if no thread slept.
  size_t wake_pollers();
  /// Returns the total number of completions that clients claim to have taken, which changes when
  /// they take more.
  uint32_t completions_taken() const;
  /// Runs a round: handles the doorbells of all awake sessions. Returns whether there were any.
  bool pump();
  /// Handles all receives and arms that have been posted so far, and nothing else.
  void take_receives();
  /// Handles all doorbells of all sessions, in an order that does not depend on when they arrived.
  /// Returns whether there were any.
  bool pump_in_order();
  /// Begins a round on a virtual clock, in which all clients may poll again.
  void begin_round();
  /// Sets the operations before which all clients, present and future, must send a request.
  void set_asked_for(uint32_t operations);
  /// Counts the threads that wait by yielding, and publishes the number to all clients from time to
  /// time.
  void count_pollers(engine::Instant now);

  /// Detaches and destroys the sessions that have ended. If they had very many objects, each call
  /// releases only some of these. Returns whether there was anything to do.
  bool reap(EnginePort& engine, ProcessMemory& memory);

  /// Returns whether reap() must be called again to release more objects.
  bool is_releasing() const { return !remains_.empty(); }

  /// Returns the number of objects that clients have destroyed since the daemon's start.
  uint64_t objects_destroyed() const { return destroyed_; }
  /// Releases memory that is still used for destroyed queues.
  void shrink();

  /// Returns the sessions sorted by their ids.
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
  std::vector<engine::ClientId> ended_;
  std::deque<ClientQueues> remains_;  // of clients that have ended
  uint64_t destroyed_ = 0;
};

}  // namespace rocemu::daemon
