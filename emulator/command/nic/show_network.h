// The table of `rocemu show --fabric`.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// The ports of a simulated network in `state` (the reply to the command "network"), for people.
/// Ports without traffic are counted only.
std::string network_text(const Json& state);

}  // namespace rocemu::command
