// A recorded frame as an event: "cm_message" if the connection manager sent it, else "frame", if
// such events are wanted.
#pragma once

#include "emulator/journal/event.h"

namespace rocemu::journal {

/// Describes the frame. Leaves the event without a name if frames of that kind are not wanted.
void describe_frame(const RecordedFrame& frame, Frames wanted, Event& event);

/// Adds the frame on which a rule acted, and the effect.
void describe_fault(const engine::FrameFault& fault, Event& event);

}  // namespace rocemu::journal
