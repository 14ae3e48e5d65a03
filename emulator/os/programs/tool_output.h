// Runs a tool of the machine, such as a debugger, and returns its output.
#pragma once

#include <string>
#include <vector>

namespace rocemu {

/// Runs a program from $PATH outside the run, so that it does not see the run's NIC. Returns what
/// it prints to standard output and standard error within the first 30 s. Returns an empty string
/// if there is no such program.
std::string output_of_tool(std::vector<std::string> words);

}  // namespace rocemu
