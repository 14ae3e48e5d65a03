// The connections that have said no hello: each takes a descriptor and a place. They are ended
// after a while, and the oldest at once when there are too many, since a provider says hello as
// soon as it is connected.
#pragma once

#include <map>
#include <optional>

#include "emulator/daemon/client/client_session.h"

namespace rocemu::daemon {

class SilentConnections {
 public:
  /// Adds a connection that was made `now`.
  void add(ClientSession& session, engine::Instant now);
  /// Takes out a connection that has said hello, or is gone.
  void remove(const ClientSession& session) { sessions_.erase(session.id()); }

  /// Ends the connections that have said no hello for long.
  void end_due(engine::Instant now);
  /// Returns when the next is due.
  std::optional<engine::Instant> next_end() const;

 private:
  struct Silent {
    ClientSession* session;
    engine::Instant since;
  };

  void end_oldest();

  std::map<engine::ClientId, Silent> sessions_;  // ids count up, so the oldest is first
  bool has_warned_ = false;
};

}  // namespace rocemu::daemon
