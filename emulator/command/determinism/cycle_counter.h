// Whether a program reads the processor's cycle counter, which no virtual clock hides from it.
#pragma once

#include <string>

namespace rocemu::command {

/// As its code tells: it has the instruction, and what compilers do with the result. Programs that
/// read the counter by a library's function are not found, nor those that use half of it.
bool reads_cycle_counter(const std::string& path);

}  // namespace rocemu::command
