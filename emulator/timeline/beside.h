// Combines two runs of the same program into one timeline.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Returns a timeline with the lanes of the first run, followed by those of the second. The
/// happenings of the two runs alternate, and a mark shows the first difference. The comparison
/// ignores times, process numbers and absolute PSNs.
Timeline beside(Timeline first, Timeline second);

/// Returns whether the happening is the mark that shows the first difference.
bool is_first_difference(const Happening& one);

}  // namespace rocemu::timeline
