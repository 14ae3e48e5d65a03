// A recording of `rocemu run --record` as a timeline.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// `dir` has a journal. What is truncated or damaged ends it, with a note; if nothing of it can be
/// read throws journal::JournalError.
Timeline read_recording(const std::string& dir);

}  // namespace rocemu::timeline
