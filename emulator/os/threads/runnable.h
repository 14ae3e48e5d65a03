// Checks whether a thread has a processor or waits for one. Its state in /proc is not sufficient: a
// thread can have "State: S" before it decides whether to sleep.
#pragma once

#include <sys/types.h>

namespace rocemu {

/// Returns whether the thread has a processor or waits for one; false if the kernel does not report
/// this, or not to this process.
bool is_runnable(pid_t process, pid_t thread);

/// Finds out what the kernel reports about sleeping threads, which takes up to some milliseconds.
/// Otherwise the first call of is_runnable() does this. A process that forks many others calls this
/// first, so that none of its children has to.
void prepare_is_runnable();

}  // namespace rocemu
