// fork(2) in a process that takes turns: the child gets a slot before it runs.
#pragma once

#include <sys/types.h>

namespace rocemu::turns {

/// Gives the child its slot. Called in the parent with the result of fork().
void forked(pid_t child);

}  // namespace rocemu::turns
