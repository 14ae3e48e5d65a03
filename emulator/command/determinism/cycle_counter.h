// Whether a program reads a cycle counter that has real time in lockstep: that of arm64. On x86-64
// it has virtual time (verbs_provider/turns/cycle_counter.h).
#pragma once

#include <string>

namespace rocemu::command {

/// Returns whether the program's code has the instruction. Programs that read the counter by a
/// library's function are not found.
bool reads_cycle_counter(const std::string& path);

}  // namespace rocemu::command
