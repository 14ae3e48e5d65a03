// A frame that leaves one place for another.
#pragma once

#include <optional>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/frame_marks.h"
#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

/// What is not a device of the fabric is outside.
struct Departure {
  std::optional<DeviceIndex> from;
  std::optional<DeviceIndex> to;
  Frame frame;
  bool check_icrc = false;  // the receiver checks the ICRC, as if it came from outside
  bool traced = false;      // it was, when it came in
  FrameMarks marks = {};
};

}  // namespace rocemu::engine
