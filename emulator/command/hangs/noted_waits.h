// Reads the notes in which programs publish what their threads wait for (abi/wait_notes.h).
#pragma once

#include <vector>

#include "emulator/os/threads/blocked_threads.h"

namespace rocemu::command {

/// Completes the descriptions of threads that wait for a lock or a condition, from the notes of
/// their programs, if a program has notes.
void describe_by_notes(std::vector<BlockedThread>& threads);

}  // namespace rocemu::command
