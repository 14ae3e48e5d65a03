// The JSON of the control socket and of --json.
#pragma once

#include <nlohmann/json.hpp>

namespace rocemu::command {

/// JSON that keeps the order in which the daemon names things.
using Json = nlohmann::ordered_json;

/// Prints to standard output, on several lines.
void print_json(const Json& json);

}  // namespace rocemu::command
