// Two runs of the same program in one timeline.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// The lanes of the first and then those of the second, with happenings of each in turn, and a mark
/// where they first differ: in what happens, not when, nor in process numbers and absolute PSNs.
Timeline beside(Timeline first, Timeline second);

/// Returns whether a happening is that mark.
bool is_first_difference(const Happening& one);

}  // namespace rocemu::timeline
