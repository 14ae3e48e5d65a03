// The processors that this process may use (sched_setaffinity(2)).
#pragma once

#include <string>
#include <vector>

namespace rocemu {

/// In order. Empty if the machine has more than we know of.
std::vector<int> allowed_processors();

/// As taskset(1) lists them: "0-3,8".
std::string processor_list(const std::vector<int>& processors);

/// This thread, and all that it starts, stay there. False on failure, with errno.
bool stay_on(int processor);

}  // namespace rocemu
