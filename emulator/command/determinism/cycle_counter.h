// Whether a program reads a cycle counter that has real time in lockstep: that of arm64, and that
// of x86-64 on a machine where reads of it do not fault (verbs_provider/turns/cycle_counter.h).
#pragma once

#include <string>

namespace rocemu::command {

/// Returns whether the program's code has the instruction. Programs that read the counter by a
/// library's function are not found.
bool reads_cycle_counter(const std::string& path);

}  // namespace rocemu::command
