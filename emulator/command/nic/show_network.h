// The table of `rocemu show --fabric`.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Returns a table of the ports of a simulated network in `state`, the reply to the command
/// "network". Only counts the ports without traffic.
std::string network_text(const Json& state);

}  // namespace rocemu::command
