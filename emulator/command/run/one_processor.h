// Keeps a run on one processor: in lockstep only one of its threads executes at a time, and waking
// the next one on another processor takes longer than continuing on the same one, above all on
// virtual machines.
#pragma once

namespace rocemu::command {

/// Keeps this process and its descendants on processor `number`; scheduled programs see the
/// processors that they would otherwise have (abi/run_processors.h). Throws UsageError if that is
/// not one of them.
void stay_on_processor(int number);

}  // namespace rocemu::command
