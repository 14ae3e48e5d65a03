// Where two runs of one command part, and which call of which process did it.
#pragma once

#include <string>

#include "emulator/command/determinism/recorded_run.h"

namespace rocemu::command {

/// Of two runs of `command`. Lines of text; empty if the runs are the same to the byte.
std::string explain_difference(const RecordedRun& first, const RecordedRun& other,
                               const Arguments& command);

/// How many lines the recording has in words.
size_t count_events(const RecordedRun& run);

}  // namespace rocemu::command
