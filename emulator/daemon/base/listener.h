// A listening socket in an event loop. Connections from processes of the same user are passed on;
// those of other users are refused and logged.
#pragma once

#include <functional>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class Listener {
 public:
  using Connected = std::function<void(UniqueFd socket, PeerCredentials peer)>;

  /// Listens at the socket, and calls `connected` with a non-blocking socket for each connection.
  /// Connections that wait at the same time are handled in the order of their pids, so that the
  /// order does not depend on a race. Throws StartError.
  Listener(EventLoop& loop, UniqueFd listener, Connected connected);

 private:
  void on_ready();
  /// Stops accepting for 100 ms because the system has no descriptor for a connection. Meanwhile
  /// the connection waits, and the event loop does not poll the socket continuously.
  void pause();

  UniqueFd listener_;
  UniqueFd timer_;
  Connected connected_;
  EventLoop::Watch watch_;
  EventLoop::Watch timer_watch_;
};

}  // namespace rocemu::daemon
