// Whether a process that takes no turns will soon: it has begun to execute a program into which the
// library of turns is loaded, and has not come to that yet. Until it has, it may sleep for as long
// as a disk or a network takes that has its files.
#pragma once

#include <sys/types.h>

namespace rocemu::daemon {

/// False as well if the process cannot be looked at, or is traced: who traces it may wait for a
/// turn.
bool is_about_to_join(pid_t process);

}  // namespace rocemu::daemon
