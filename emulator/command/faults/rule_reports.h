// Reports how often a NIC's rules acted.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// The reply to "rules" as a table or as JSON, to standard output.
void print_rules(const Json& reply, bool as_json);

/// One line for each rule that never acted.
std::vector<std::string> idle_rules(const Json& reply);

}  // namespace rocemu::command
