// The processors that a program sees. `rocemu run --processor` restricts a run to one processor,
// since in lockstep only one thread runs at a time anyway, but the program still sees all
// processors.
#pragma once

#include <cstddef>

#include <sched.h>
#include <sys/types.h>

namespace rocemu::turns {

/// Replaces `set`, the kernel's answer for `thread` (0: the calling one) of `size` bytes, by the
/// set that the program would see without rocemu.
void tell_of_all_processors(pid_t thread, size_t size, cpu_set_t* set);

/// Notes that the program has chosen processors for `thread`: from now on the kernel's answers are
/// shown unchanged.
void processors_are_chosen(pid_t thread);

}  // namespace rocemu::turns
