// The socket by which `rocemu` talks to the daemon: one JSON object per line in each direction.
// {"command":"version"}, {"command":"show"}, {"command":"shutdown"} and
// {"command":"set","device":NAME,"port":"up" or "down"} and those of fault_commands.h are answered
// with "ok":true and what was asked for, anything else with "ok":false and an "error" in words.
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

  /// Why a command is not done.
  class Refusal : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };

  /// What each command does with its request: returns what is to be added to {"ok":true}, or throws
  /// a Refusal.
  using Command = std::function<Json(const Json& request)>;
  using Commands = std::map<std::string, Command>;

  /// The same for a command that takes time. It returns at once, and calls `done` later, once, with
  /// what the answer has in addition. Until then the connection's next requests wait.
  using Done = std::function<void(Json)>;
  using SlowCommand = std::function<void(const Json& request, Done done)>;
  using SlowCommands = std::map<std::string, SlowCommand>;

  /// Throws StartError if the listening socket cannot be watched.
  ControlServer(EventLoop& loop, UniqueFd listener, Commands commands,
                SlowCommands slow_commands = {});

 private:
  struct Connection {
    UniqueFd socket;
    EventLoop::Watch watch;
    std::string input;
    std::string output;  // what the peer has not taken yet; it is asked nothing more until then
    bool at_end = false;
    bool awaits_done = false;  // of a slow command
    uint64_t serial = 0;       // the descriptor may be another's by then
  };

  void on_connect(UniqueFd socket);
  void on_ready(int fd);
  /// Both are false if the connection is over.
  bool read_from(Connection& connection);
  bool write_to(Connection& connection);
  void answer_lines(Connection& connection);
  /// Empty if the answer comes later.
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
