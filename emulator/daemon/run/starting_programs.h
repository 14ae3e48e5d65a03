// Detects a process that does not take turns yet, but will soon: it has started to execute a
// program into which librocemu-turns.so is loaded, and the library has not joined yet. Until then,
// the process can sleep for as long as the disk or network with its files takes.
#pragma once

#include <sys/types.h>

namespace rocemu::daemon {

/// Returns whether the process is about to join. Returns false if the process cannot be examined,
/// or is traced, since its tracer may wait for a turn.
bool is_about_to_join(pid_t process);

}  // namespace rocemu::daemon
