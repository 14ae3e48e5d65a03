// Reads a recording of `rocemu run --record` as a timeline.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Reads the journal in the directory `dir`. If a part is truncated or damaged, the timeline ends
/// before it, with a note. Throws journal::JournalError if nothing can be read.
Timeline read_recording(const std::string& dir);

}  // namespace rocemu::timeline
