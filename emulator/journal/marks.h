// The marks of a frame in a journal. Most frames have few: a bit set shows which of them follow.
#pragma once

#include "emulator/engine/base/frame_marks.h"
#include "emulator/journal/bytes.h"

namespace rocemu::journal {

void append_marks(Appender& to, const engine::FrameMarks& marks);
void take_marks(Taker& from, engine::FrameMarks& marks);

}  // namespace rocemu::journal
