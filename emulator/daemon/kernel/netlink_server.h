// The socket that emulates the kernel's RDMA netlink: each connection sends requests and receives
// datagrams of messages.
#pragma once

#include <deque>
#include <map>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/listener.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/kernel/nldev.h"

namespace rocemu::daemon {

class NetlinkServer {
 public:
  /// The maximum size of a request. Longer requests are not answered.
  static constexpr size_t kMaxRequest = 4096;
  /// The size up to which messages are combined; readers have space for twice as much.
  static constexpr size_t kDatagram = 4096;

  /// Throws StartError if the listening socket cannot be watched. `source` must outlive the server.
  NetlinkServer(EventLoop& loop, UniqueFd listener, NldevSource& source);

 private:
  struct Connection {
    UniqueFd socket;
    EventLoop::Watch watch;    // after the fd: destroyed first
    std::deque<Bytes> output;  // waits for space at the peer, whose requests wait, too
  };

  void on_connect(UniqueFd socket);
  void on_ready(int fd);
  /// Both functions return false if the connection has ended.
  bool read_from(Connection& connection);
  bool write_to(Connection& connection);

  EventLoop& loop_;
  NldevSource& source_;
  Listener listener_;
  std::map<int, Connection> connections_;  // by fd
};

}  // namespace rocemu::daemon
