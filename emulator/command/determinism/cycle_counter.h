// Finds programs that read real time from the cycle counter in lockstep. That is so on arm64, and
// on x86-64 machines where a read of the counter does not fault
// (verbs_provider/turns/cycle_counter.h).
#pragma once

#include <string>

namespace rocemu::command {

/// Returns whether the program's code has the instruction. Programs that read the counter by a
/// library's function are not found.
bool reads_cycle_counter(const std::string& path);

}  // namespace rocemu::command
