// Reads a capture of RoCEv2 frames as a timeline. Its lanes are QPs at addresses. Any capture can
// be read.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Reads the capture in the file `path`. Frames that are not RoCEv2 are skipped, with a note in the
/// timeline. Throws std::runtime_error if the file is not a capture.
Timeline read_capture(const std::string& path);

}  // namespace rocemu::timeline
