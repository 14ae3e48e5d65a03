// Prints the tables of `rocemu show`.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Returns all values in `state` as tables. `state` is the reply to the command "show". A missing
/// value is omitted, and a value of an unexpected type is printed as it is; neither is an error.
std::string show_text(const Json& state);

}  // namespace rocemu::command
