// Reads the keys of a request at the control socket. If a command does not have a key, or does not
// accept its value, the request is refused and has no effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/daemon/control/control_server.h"

namespace rocemu::daemon {

/// Returns `command` with a check that refuses requests with keys other than `keys`.
ControlServer::Command taking(std::vector<std::string> keys, ControlServer::Command command);

// The following functions return the value of a key, or nothing if the request does not have the
// key. They throw ControlServer::Refusal if the value is not valid.
std::optional<std::string> text_of(const Json& request, const char* key);
std::optional<bool> flag_of(const Json& request, const char* key);
std::optional<uint64_t> number_of(const Json& request, const char* key, uint64_t least,
                                  uint64_t most);

}  // namespace rocemu::daemon
