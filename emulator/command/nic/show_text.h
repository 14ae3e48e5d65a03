// The tables of `rocemu show`.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Returns everything in `state` (see control_client.h, command "show") as text for people. A
/// missing value is left out, and a value of an unexpected type is shown as it is; neither is an
/// error.
std::string show_text(const Json& state);

}  // namespace rocemu::command
