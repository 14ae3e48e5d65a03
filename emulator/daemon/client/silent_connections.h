// The connections that have not sent a hello, each of which takes a descriptor and memory. A
// provider sends its hello as soon as it is connected. Connections without a hello are therefore
// ended after 30 s, and the oldest one at once when there are too many.
#pragma once

#include <map>
#include <optional>

#include "emulator/daemon/client/client_session.h"

namespace rocemu::daemon {

class SilentConnections {
 public:
  /// Adds a connection that was accepted at `now`.
  void add(ClientSession& session, engine::Instant now);
  /// Removes a connection that has sent its hello, or has ended.
  void remove(const ClientSession& session) { sessions_.erase(session.id()); }

  /// Ends the connections that have waited too long for a hello.
  void end_due(engine::Instant now);
  /// Returns the time at which the next connection must be ended; nothing if there is none.
  std::optional<engine::Instant> next_end() const;

 private:
  struct Silent {
    ClientSession* session;
    engine::Instant since;
  };

  void end_oldest();

  std::map<engine::ClientId, Silent> sessions_;  // ids increase, so the oldest is first
  bool has_warned_ = false;
};

}  // namespace rocemu::daemon
