// Reads any capture of RoCEv2 frames as a timeline: its lanes are QPs at addresses.
#pragma once

#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// What is no RoCEv2 is left out, with a note. Throws std::runtime_error if it is no capture.
Timeline read_capture(const std::string& path);

}  // namespace rocemu::timeline
