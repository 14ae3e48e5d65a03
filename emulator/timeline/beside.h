// Combines two runs of the same program into one timeline.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Returns the lanes of the first run, then those of the second. Happenings of the two runs
/// alternate, and the first difference has a mark. Only the happenings are compared, and not times,
/// process numbers or absolute PSNs.
Timeline beside(Timeline first, Timeline second);

/// Returns whether a happening is the mark of the first difference.
bool is_first_difference(const Happening& one);

}  // namespace rocemu::timeline
