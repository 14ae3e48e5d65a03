// The connection of a client: receives requests of the control protocol with their descriptors, and
// sends replies. Any invalid message ends the client; after that, nothing is received or sent.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class RequestSocket {
 public:
  struct Received {
    abi::Request request;
    std::vector<UniqueFd> fds;
  };
  /// Is called with the reason when the connection must end. An empty reason means an orderly end.
  using End = std::function<void(std::string)>;

  RequestSocket(EventLoop& loop, UniqueFd socket, std::function<void()> on_readable, End end);

  int fd() const { return socket_.get(); }
  bool is_watched() const { return static_cast<bool>(watch_); }
  /// Returns whether no process has the other end of the connection open.
  bool is_hung_up() const;

  /// Returns the next request; nothing if there is none, or if it is invalid. If `takes_memory` is
  /// true, the request may have a descriptor of the client's memory.
  std::optional<Received> receive(bool takes_memory);

  void reply(const abi::Request& request, abi::Reply reply, std::span<const int> fds);
  /// Sends a reply whose only content is `error`: 0 or an errno value.
  void reply_status(const abi::Request& request, int error);

  /// Stops receiving and sending. Must be called when the client ends.
  void stop();

 private:
  UniqueFd socket_;
  End end_;
  bool has_stopped_ = false;
  EventLoop::Watch watch_;
};

}  // namespace rocemu::daemon
