// What a tool of the machine prints.
#pragma once

#include <string>
#include <vector>

namespace rocemu {

/// Runs a program of $PATH, which sees nothing of the run's NIC, and returns its output and its
/// errors; what it has printed by then if it takes more than 30 s. Empty if there is none.
std::string output_of_tool(std::vector<std::string> words);

}  // namespace rocemu
