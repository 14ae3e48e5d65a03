// The control socket of a NIC, as docs/control.md has it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rocemu::testing {

using Json = nlohmann::ordered_json;

class ControlSocket {
 public:
  /// Throws Error, as all others do.
  explicit ControlSocket(const std::string& directory);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  /// Returns the reply; throws the NIC's error if the request fails.
  Json request(const Json& request);

 private:
  std::string read_line();

  int fd_ = -1;
  std::string received_;
};

}  // namespace rocemu::testing
