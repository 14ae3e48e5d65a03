// The socket through which `rocemu` communicates with the daemon, with one JSON object per line in
// each direction. A reply has "ok":true and the requested data, or "ok":false and an "error" text.
// docs/control.md describes the commands.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/listener.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/control/state_json.h"

namespace rocemu::daemon {

class ControlServer {
 public:
  static constexpr size_t kMaxLine = 2 << 20;

  /// Is thrown by a command that is refused, with the reason.
  class Refusal : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };

  /// The implementation of a command. It returns the members to add to {"ok":true}, or throws a
  /// Refusal.
  using Command = std::function<Json(const Json& request)>;
  using Commands = std::map<std::string, Command>;

  /// The implementation of a command that takes time. It returns immediately, and later calls
  /// `done` once with the additional members of the reply. The connection's next requests wait
  /// until then.
  using Done = std::function<void(Json)>;
  using SlowCommand = std::function<void(const Json& request, Done done)>;
  using SlowCommands = std::map<std::string, SlowCommand>;

  /// Starts to serve `listener`. Throws StartError if the listening socket cannot be watched.
  ControlServer(EventLoop& loop, UniqueFd listener, Commands commands,
                SlowCommands slow_commands = {});

 private:
  struct Connection {
    UniqueFd socket;
    EventLoop::Watch watch;
    std::string input;
    std::string output;  // waits for space at the peer, whose requests wait, too
    bool at_end = false;
    bool awaits_done = false;  // of a slow command
    uint64_t serial = 0;       // the descriptor may belong to another connection by then
  };

  void on_connect(UniqueFd socket);
  void on_ready(int fd);
  /// Reads from, or writes to, the socket. Returns false if the connection has ended.
  bool read_from(Connection& connection);
  bool write_to(Connection& connection);
  void answer_lines(Connection& connection);
  /// Executes the request in `line`. Returns the reply, or an empty text if the reply follows
  /// later.
  std::string answer(Connection& connection, std::string_view line);
  void finish(int fd, uint64_t serial, const Json& result);

  EventLoop& loop_;
  Commands commands_;
  SlowCommands slow_commands_;
  Listener listener_;
  std::map<int, Connection> connections_;  // by fd
  uint64_t last_serial_ = 0;
};

}  // namespace rocemu::daemon
