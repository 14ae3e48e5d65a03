// Writes and reads the marks of a frame in a journal. Most frames have few marks: a byte of flags
// shows which ones follow.
#pragma once

#include "emulator/engine/base/frame_marks.h"
#include "emulator/journal/bytes.h"

namespace rocemu::journal {

void append_marks(Appender& to, const engine::FrameMarks& marks);
void take_marks(Taker& from, engine::FrameMarks& marks);

}  // namespace rocemu::journal
