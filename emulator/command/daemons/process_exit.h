// Waiting for a process to end, for a bounded time and without polling where the kernel can.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

namespace rocemu::command {

/// Waits until process `pid`, a child or not, has ended (a child is not reaped). False if it still
/// runs after `timeout`.
bool wait_until_gone(pid_t pid, std::chrono::milliseconds timeout);

/// True of one that was killed, or that ends, and of which the kernel has not yet taken all away.
bool is_ending(pid_t pid);

/// "was killed by signal 9 (Killed)" or "ended with status 1", from a wait status.
std::string describe_wait_status(int wait_status);

}  // namespace rocemu::command
