// The keys of a request at the control socket. A key that a command does not know, or a value that
// is not what the command takes, is refused, and the request does nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/daemon/control/control_server.h"

namespace rocemu::daemon {

/// The command, which takes these keys and no others.
ControlServer::Command taking(std::vector<std::string> keys, ControlServer::Command command);

// The value of a key, or nothing if it is not given. They throw ControlServer::Refusal.
std::optional<std::string> text_of(const Json& request, const char* key);
std::optional<bool> flag_of(const Json& request, const char* key);
std::optional<uint64_t> number_of(const Json& request, const char* key, uint64_t least,
                                  uint64_t most);

}  // namespace rocemu::daemon
