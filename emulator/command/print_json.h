// What --json prints.
#pragma once

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// To standard output, on several lines.
void print_json(const Json& json);

}  // namespace rocemu::command
