// The connections that have not sent a hello: each takes a descriptor and a place. They are ended
// after a while, and the oldest at once when there are too many, since a provider sends its hello
// as soon as it is connected.
#pragma once

#include <map>
#include <optional>

#include "emulator/daemon/client/client_session.h"

namespace rocemu::daemon {

class SilentConnections {
 public:
  /// Adds a connection that was made at `now`.
  void add(ClientSession& session, engine::Instant now);
  /// Removes a connection that has sent its hello, or has ended.
  void remove(const ClientSession& session) { sessions_.erase(session.id()); }

  /// Ends the connections that have waited too long for a hello.
  void end_due(engine::Instant now);
  /// Returns the time when the next connection must be ended.
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
