// Reports how often a NIC's rules acted.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Prints the reply to "rules" to standard output, as a table or as JSON.
void print_rules(const Json& reply, bool as_json);

/// Returns a line for each rule that never acted.
std::vector<std::string> idle_rules(const Json& reply);

}  // namespace rocemu::command
