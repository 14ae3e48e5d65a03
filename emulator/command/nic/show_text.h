// The tables of `rocemu show`.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Everything in `state` (see control_client.h, command "show"), for people. What is missing or of
/// an unexpected type is shown as it is or left out, never an error.
std::string show_text(const Json& state);

}  // namespace rocemu::command
