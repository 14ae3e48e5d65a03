// fork(2) in a process that takes turns.
#pragma once

#include <sys/types.h>

namespace rocemu::turns {

/// In the parent, with what fork() returned.
void forked(pid_t child);

}  // namespace rocemu::turns
