// The tables of `rocemu show`.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Returns everything in `state`, the reply to the command "show", as tables. Omits missing values,
/// and prints values of unexpected types unchanged; neither is an error.
std::string show_text(const Json& state);

}  // namespace rocemu::command
