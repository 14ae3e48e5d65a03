// Keeping a run on one processor: in lockstep only one of its threads goes at a time, and to wake
// the next on another processor takes longer than to go on there, above all on virtual machines.
#pragma once

namespace rocemu::command {

/// This process, and all that it starts, stay on processor `number`; programs that take turns are
/// told of all that they would have otherwise (abi/run_processors.h). Throws UsageError if that is
/// not one of them.
void stay_on_processor(int number);

}  // namespace rocemu::command
