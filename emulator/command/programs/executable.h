// Finds the program that a command names, as execvp does, and explains why a program cannot be
// executed.
#pragma once

#include <string>

namespace rocemu::command {

/// Returns the file that `name` executes. Throws Error with status 127 (it does not exist) or 126
/// (it cannot be executed).
std::string find_executable(const std::string& name);

/// Finds the program of a command that must run. Is like find_executable(), but also throws if the
/// file names an interpreter that is missing or cannot be executed.
std::string find_command(const std::string& name);

}  // namespace rocemu::command
