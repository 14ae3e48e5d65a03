// The keys of a request at the control socket. If a command does not know a key or does not accept
// a value, the request is refused without an effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/daemon/control/control_server.h"

namespace rocemu::daemon {

/// Returns the command, which takes these keys and no others.
ControlServer::Command taking(std::vector<std::string> keys, ControlServer::Command command);

// These functions return the value of a key, or nothing if it is not given. They throw
// ControlServer::Refusal.
std::optional<std::string> text_of(const Json& request, const char* key);
std::optional<bool> flag_of(const Json& request, const char* key);
std::optional<uint64_t> number_of(const Json& request, const char* key, uint64_t least,
                                  uint64_t most);

}  // namespace rocemu::daemon
