// Combines two runs of the same program into one timeline.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Returns the lanes of the first and then those of the second, with happenings of each
/// alternately, and a mark at the first difference. Only what happens is compared, and not the
/// time, process numbers or absolute PSNs.
Timeline beside(Timeline first, Timeline second);

/// Returns whether a happening is that mark.
bool is_first_difference(const Happening& one);

}  // namespace rocemu::timeline
