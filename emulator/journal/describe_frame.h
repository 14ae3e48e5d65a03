// A recorded frame as an event: "cm_message" if the connection manager sent it, else "frame".
#pragma once

#include "emulator/journal/event.h"

namespace rocemu::journal {

void describe_frame(const RecordedFrame& frame, Event& event);

}  // namespace rocemu::journal
