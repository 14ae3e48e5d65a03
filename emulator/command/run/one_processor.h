// Keeps a run on one processor: in lockstep only one of its threads executes at a time, and waking
// the next one on another processor takes longer than continuing on the same one, above all on
// virtual machines.
#pragma once

namespace rocemu::command {

/// Restricts this process and its descendants to processor `number`. Programs in lockstep still see
/// the processors that they would otherwise have (abi/run_processors.h). Throws UsageError if that
/// processor may not be used.
void stay_on_processor(int number);

}  // namespace rocemu::command
