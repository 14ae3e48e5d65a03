// Finds the program a command names, as execvp does, and says why one cannot be run.
#pragma once

#include <string>

namespace rocemu::command {

/// The file that `name` runs. Throws Error with status 127 (there is none) or 126 (it cannot be
/// executed).
std::string find_executable(const std::string& name);

/// Finds a command that must run: like find_executable, but also throws if the interpreter that the
/// file names is missing or cannot be executed.
std::string find_command(const std::string& name);

}  // namespace rocemu::command
