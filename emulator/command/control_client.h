// Talks to a running daemon over DIR/control: one JSON object per line in each direction.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "emulator/os/unique_fd.h"

namespace rocemu::command {

/// Keeps the order in which the daemon names things.
using Json = nlohmann::ordered_json;

class ControlClient {
 public:
  /// Nothing if no daemon listens in `dir`.
  static std::optional<ControlClient> connect(const std::string& dir);

  /// Sends {"command": command} and `arguments` beside it, and returns the reply. Throws Failure if
  /// the daemon refuses or does not answer in time.
  Json request(const std::string& command, const Json& arguments = Json::object());

  /// Throws Failure unless the daemon is of our version.
  void require_same_version();

  /// The process that listens.
  pid_t daemon_pid() const;
  const std::string& dir() const { return dir_; }

 private:
  ControlClient(std::string dir, UniqueFd socket);
  std::string read_line();

  std::string dir_;
  UniqueFd socket_;
  std::string received_;
};

}  // namespace rocemu::command
