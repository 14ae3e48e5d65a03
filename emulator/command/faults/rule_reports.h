// Reports how often the rules of a NIC acted.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Prints the rules to standard output, as a table or as JSON. `reply` is the daemon's reply to the
/// request "rules".
void print_rules(const Json& reply, bool as_json);

/// Returns a line for each rule that never acted. `reply` is the daemon's reply to the request
/// "rules".
std::vector<std::string> idle_rules(const Json& reply);

}  // namespace rocemu::command
