// The JSON of the control socket and of --json.
#pragma once

#include <nlohmann/json.hpp>

namespace rocemu::command {

/// JSON that keeps the daemon's order of keys.
using Json = nlohmann::ordered_json;

/// Prints the JSON to standard output, indented.
void print_json(const Json& json);

}  // namespace rocemu::command
