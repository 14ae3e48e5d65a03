// Talks to a running daemon over DIR/control: one JSON object per line in each direction.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "emulator/command/base/print_json.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {

class ControlClient {
 public:
  /// The time to wait for a reply. In lockstep the daemon replies when all its clients wait. The
  /// daemon allows a minute for a client that has no processor or waits for a disk.
  static constexpr std::chrono::seconds kPatience{120};

  /// Connects to the daemon in `dir`; returns nothing if none listens there. Waits up to `patience`
  /// for a reply, and after some seconds prints on a terminal that it is waiting.
  static std::optional<ControlClient> connect(const std::string& dir,
                                              std::chrono::seconds patience = kPatience);

  /// Sends {"command": command} together with `arguments`, and returns the reply. Throws Failure if
  /// the daemon refuses, or does not reply in time.
  Json request(const std::string& command, const Json& arguments = Json::object());

  /// Throws Failure unless the daemon has the same version as this program.
  void require_same_version();

  /// Returns the PID of the process that listens.
  pid_t daemon_pid() const;
  const std::string& dir() const { return dir_; }

 private:
  ControlClient(std::string dir, UniqueFd socket, std::chrono::seconds patience);
  std::string read_line();
  std::string daemon_name() const;

  std::string dir_;
  UniqueFd socket_;
  std::chrono::seconds patience_;
  std::string received_;
};

}  // namespace rocemu::command
