// The socket that stands for the kernel's RDMA netlink: each connection sends requests and gets
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
  /// Longer requests are not answered.
  static constexpr size_t kMaxRequest = 4096;
  /// Messages are put together up to this; readers have room for twice as much.
  static constexpr size_t kDatagram = 4096;

  /// Throws StartError if the listening socket cannot be watched. `source` must outlive the server.
  NetlinkServer(EventLoop& loop, UniqueFd listener, NldevSource& source);

 private:
  struct Connection {
    UniqueFd socket;
    EventLoop::Watch watch;    // after the fd: goes first
    std::deque<Bytes> output;  // what the peer has no room for yet; it is asked nothing more
  };

  void on_connect(UniqueFd socket);
  void on_ready(int fd);
  /// Both are false if the connection is over.
  bool read_from(Connection& connection);
  bool write_to(Connection& connection);

  EventLoop& loop_;
  NldevSource& source_;
  Listener listener_;
  std::map<int, Connection> connections_;  // by fd
};

}  // namespace rocemu::daemon
