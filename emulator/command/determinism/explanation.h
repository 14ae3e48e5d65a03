// Explains where two runs of one command first differ, and which call of which process caused it.
#pragma once

#include <string>

#include "emulator/command/determinism/recorded_run.h"

namespace rocemu::command {

/// Explains the first difference between two runs of `command`, in lines of text. Empty if the runs
/// are identical.
std::string explain_difference(const RecordedRun& first, const RecordedRun& other,
                               const Arguments& command);

/// Returns the number of events and frames in the recording.
size_t count_events(const RecordedRun& run);

}  // namespace rocemu::command
