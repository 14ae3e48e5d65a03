// The notes in which programs publish what their threads wait for (abi/wait_notes.h).
#pragma once

#include <vector>

#include "emulator/os/threads/blocked_threads.h"

namespace rocemu::command {

/// Describes threads that wait for a lock or a condition by the notes of their programs, if there
/// are any.
void describe_by_notes(std::vector<BlockedThread>& threads);

}  // namespace rocemu::command
