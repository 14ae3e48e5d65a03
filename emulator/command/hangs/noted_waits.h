// The waits of their threads that programs publish (abi/wait_notes.h).
#pragma once

#include <vector>

#include "emulator/os/threads/blocked_threads.h"

namespace rocemu::command {

/// Describes threads that wait for a lock or a condition by their program's note about them, if
/// there is one.
void describe_by_notes(std::vector<BlockedThread>& threads);

}  // namespace rocemu::command
