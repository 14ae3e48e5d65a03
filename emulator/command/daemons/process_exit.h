// Waits for a process to end, with a time limit, and without polling if the kernel supports it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace rocemu::command {

/// Waits until process `pid`, a child or not, has ended. Does not reap it. Returns false if the
/// process still runs after `timeout`.
bool wait_until_gone(pid_t pid, std::chrono::milliseconds timeout);

/// Returns whether the process is dying: it was killed or is exiting, but the kernel has not yet
/// released all of its resources.
bool is_ending(pid_t pid);

/// Returns the text for a wait status: "was killed by signal 9 (Killed)" or "ended with status 1".
std::string describe_wait_status(int wait_status);

}  // namespace rocemu::command
