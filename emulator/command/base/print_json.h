// Prints JSON for the option --json, and defines the JSON type for messages on the control socket.
#pragma once

#include <nlohmann/json.hpp>

namespace rocemu::command {

/// A JSON value whose keys stay in the order in which the daemon sent them.
using Json = nlohmann::ordered_json;

/// Prints the JSON to standard output, indented.
void print_json(const Json& json);

}  // namespace rocemu::command
