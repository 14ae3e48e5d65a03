// Prints the table of `rocemu show --fabric`.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Returns a table of a simulated network's ports. `state` is the reply to the command "network".
/// Ports that are up and had no traffic have no row; a line below the table shows their number.
std::string network_text(const Json& state);

}  // namespace rocemu::command
