// The connection of a client: receives requests of the control protocol with their descriptors, and
// sends replies. Every invalid message ends the client; after that nothing is read or sent.
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
  /// Called with the reason; an empty one is an orderly end.
  using End = std::function<void(std::string)>;

  RequestSocket(EventLoop& loop, UniqueFd socket, std::function<void()> on_readable, End end);

  int fd() const { return socket_.get(); }
  bool is_watched() const { return static_cast<bool>(watch_); }
  /// Returns whether no process has the other end open any more.
  bool is_hung_up() const;

  /// Returns the next request, if there is one and it is valid. With `takes_memory`, it may have a
  /// descriptor of the client's memory.
  std::optional<Received> receive(bool takes_memory);

  void reply(const abi::Request& request, abi::Reply reply, std::span<const int> fds);
  /// Sends a reply that has only 0 or an errno value.
  void reply_status(const abi::Request& request, int error);

  /// Stops receiving and sending. Called when the client ends.
  void stop();

 private:
  UniqueFd socket_;
  End end_;
  bool has_stopped_ = false;
  EventLoop::Watch watch_;
};

}  // namespace rocemu::daemon
