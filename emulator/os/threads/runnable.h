// Checks whether a thread has a processor or waits for one, whatever its state: a thread can have
// "State: S" before it checks whether it must sleep.
#pragma once

#include <sys/types.h>

namespace rocemu {

/// Also returns false if the kernel does not report it, or not to this process.
bool is_runnable(pid_t process, pid_t thread);

}  // namespace rocemu
