// Reads any capture of RoCEv2 frames as a timeline, whose lanes are QPs at addresses.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Reads the capture. Frames that are not RoCEv2 are skipped, with a note. Throws
/// std::runtime_error if the file is not a capture.
Timeline read_capture(const std::string& path);

}  // namespace rocemu::timeline
