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
  /// In lockstep the daemon answers when all its clients wait, and one that has no processor, or
  /// waits for a disk, it gives a minute.
  static constexpr std::chrono::seconds kPatience{120};

  /// Returns nothing if no daemon listens in `dir`. Waits up to `patience` for a reply, and prints
  /// on a terminal that it waits if that takes some seconds.
  static std::optional<ControlClient> connect(const std::string& dir,
                                              std::chrono::seconds patience = kPatience);

  /// Sends {"command": command} and `arguments` beside it, and returns the reply. Throws Failure if
  /// the daemon refuses or does not answer in time.
  Json request(const std::string& command, const Json& arguments = Json::object());

  /// Throws Failure unless the daemon is of our version.
  void require_same_version();

  /// The process that listens.
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
