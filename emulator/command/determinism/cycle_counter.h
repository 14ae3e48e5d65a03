// Finds programs that read real time from the cycle counter although they run in lockstep. This is
// possible on arm64, and on x86-64 machines where reading the counter does not fault
// (verbs_provider/turns/cycle_counter.h).
#pragma once

#include <string>

namespace rocemu::command {

/// Returns whether the program's own code has the instruction that reads the counter. Does not find
/// programs that read the counter through a library function.
bool reads_cycle_counter(const std::string& path);

}  // namespace rocemu::command
