// The memory that fork() does not make copy-on-write
#pragma once

#include <string_view>
#include <vector>

#include "emulator/sanitizer/requests.h"

namespace rocemu::sanitizer {

/// Returns the memory whose pages stay those of the process after fork(), by address: memory that
/// it shares with the child, and memory that the child does not get. `smaps` is the text of
/// /proc/self/smaps (proc_pid_smaps(5)).
std::vector<MemoryRange> memory_kept_at_fork(std::string_view smaps);

}  // namespace rocemu::sanitizer
