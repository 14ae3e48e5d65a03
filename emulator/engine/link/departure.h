// A frame that is transmitted to a device or to the network outside the fabric.
#pragma once

#include <optional>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/frame_marks.h"
#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

/// The frame with its source and destination, each of which is a device of the fabric or, if empty,
/// is outside.
struct Departure {
  std::optional<DeviceIndex> from;
  std::optional<DeviceIndex> to;
  Frame frame;
  bool check_icrc = false;  // the receiver checks the ICRC, as for a frame from outside
  bool traced = false;      // already traced on arrival
  FrameMarks marks = {};
  std::optional<QpNumber> qp = {};  // of the fabric, that sends it
};

}  // namespace rocemu::engine
