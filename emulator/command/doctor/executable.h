// Finds the program a command names, as execvp does.
#pragma once

#include <string>

namespace rocemu::command {

/// The file that `name` runs. Throws Error with status 127 (there is none) or 126 (it cannot be
/// executed).
std::string find_executable(const std::string& name);

}  // namespace rocemu::command
