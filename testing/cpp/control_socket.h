// A client of a NIC's control socket, whose protocol is in docs/control.md.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rocemu::testing {

using Json = nlohmann::ordered_json;

class ControlSocket {
 public:
  /// Connects to the socket. Throws Error, as do the other functions here.
  explicit ControlSocket(const std::string& directory);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  /// Sends the request and returns the reply. If the request fails, throws the NIC's error.
  Json request(const Json& request);

 private:
  std::string read_line();

  int fd_ = -1;
  std::string received_;
};

}  // namespace rocemu::testing
