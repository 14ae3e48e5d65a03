// The output of a tool of the machine
#pragma once

#include <string>
#include <vector>

namespace rocemu {

/// Runs a program from $PATH, which sees nothing of the run's NIC, and returns its output and
/// errors; after 30 s, what it has printed by then. Empty if there is no such program.
std::string output_of_tool(std::vector<std::string> words);

}  // namespace rocemu
