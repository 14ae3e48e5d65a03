// Which processors a program may use: `rocemu run --processor` keeps a run on one, where in
// lockstep only one thread goes at a time anyway, and the program is told of all.
#pragma once

#include <cstddef>

#include <sched.h>
#include <sys/types.h>

namespace rocemu::turns {

/// `set`, which the kernel has told of `thread` (0: this one) and which has so many bytes, becomes
/// the one that it would be without rocemu.
void tell_of_all_processors(pid_t thread, size_t size, cpu_set_t* set);

/// The program has chosen processors for `thread`: what the kernel tells of that is true.
void processors_are_chosen(pid_t thread);

}  // namespace rocemu::turns
