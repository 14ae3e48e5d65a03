// The processors that this process may use (sched_setaffinity(2)).
#pragma once

#include <string>
#include <vector>

namespace rocemu {

/// Returns the numbers of the processors in ascending order; nothing if the machine has more than a
/// cpu_set_t can hold.
std::vector<int> allowed_processors();

/// Returns the list in the format of taskset(1): "0-3,8".
std::string processor_list(const std::vector<int>& processors);

/// Restricts this thread, and all threads and processes that it starts, to the processor. Returns
/// false with errno set on failure.
bool stay_on(int processor);

}  // namespace rocemu
