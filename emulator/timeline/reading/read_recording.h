// Reads a recording of `rocemu run --record` as a timeline.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Reads the journal in `dir`. A truncated or damaged part ends the timeline, with a note. Throws
/// journal::JournalError if nothing can be read.
Timeline read_recording(const std::string& dir);

}  // namespace rocemu::timeline
