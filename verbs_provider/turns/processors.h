// Which processors a program may use: `rocemu run --processor` keeps a run on one, where in
// lockstep only one thread goes at a time anyway, and the program is told of all.
#pragma once

#include <cstddef>

#include <sched.h>

namespace rocemu::turns {

/// `set`, which the kernel has told and which has so many bytes, becomes the one that it would be
/// without rocemu.
void tell_of_all_processors(size_t size, cpu_set_t* set);

/// The program has chosen processors: from now on, and for programs that it executes, what the
/// kernel tells is true.
void processors_are_chosen();

}  // namespace rocemu::turns
