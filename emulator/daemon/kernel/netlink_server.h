// The socket that emulates the kernel's RDMA netlink. Clients send requests, and receive datagrams
// of messages.
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
  /// The maximum size of a request. Longer requests get no reply.
  static constexpr size_t kMaxRequest = 4096;
  /// The size up to which messages are combined in one datagram. Readers have space for twice this
  /// size.
  static constexpr size_t kDatagram = 4096;

  /// Serves `listener`. Throws StartError if the socket cannot be watched. `source` must outlive
  /// the server.
  NetlinkServer(EventLoop& loop, UniqueFd listener, NldevSource& source);

 private:
  struct Connection {
    UniqueFd socket;
    EventLoop::Watch watch;    // after the fd: destroyed first
    std::deque<Bytes> output;  // waits for space at the peer, whose requests wait, too
  };

  void on_connect(UniqueFd socket);
  void on_ready(int fd);
  /// Reads from, or writes to, the socket. Returns false if the connection has ended.
  bool read_from(Connection& connection);
  bool write_to(Connection& connection);

  EventLoop& loop_;
  NldevSource& source_;
  Listener listener_;
  std::map<int, Connection> connections_;  // by fd
};

}  // namespace rocemu::daemon
