// Whether a thread has a processor, or waits for one, whatever its state says: "State: S" is said
// of one that has yet to look whether it has to sleep.
#pragma once

#include <sys/types.h>

namespace rocemu {

/// False also if the kernel does not tell, or does not tell us.
bool is_runnable(pid_t process, pid_t thread);

}  // namespace rocemu
