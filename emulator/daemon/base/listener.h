// A listening socket in an event loop: connections of processes of our user are handed over, those
// of others are refused, and the log says so.
#pragma once

#include <functional>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class Listener {
 public:
  using Connected = std::function<void(UniqueFd socket, PeerCredentials peer)>;

  /// Calls `connected`, with a non-blocking socket, for each connection. Of those that wait
  /// together the order is that of their pids, for which nobody races. Throws StartError.
  Listener(EventLoop& loop, UniqueFd listener, Connected connected);

 private:
  void on_ready();
  /// While the system has no descriptor for a connection it waits, and we do not look at it all the
  /// time.
  void pause();

  UniqueFd listener_;
  UniqueFd timer_;
  Connected connected_;
  EventLoop::Watch watch_;
  EventLoop::Watch timer_watch_;
};

}  // namespace rocemu::daemon
