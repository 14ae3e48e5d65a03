// Describes a recorded frame as an event: "cm_message" if the connection manager sent it, otherwise
// "frame".
#pragma once

#include "emulator/journal/event.h"

namespace rocemu::journal {

/// Describes the frame. The event has no name afterwards if frames of this kind are not wanted.
void describe_frame(const RecordedFrame& frame, Frames wanted, Event& event);

/// Adds the number of the frame on which a rule acted, and what the rule did to it.
void describe_fault(const engine::FrameFault& fault, Event& event);

}  // namespace rocemu::journal
