// Writes a timeline as Chrome trace JSON, which ui.perfetto.dev opens: a process for each program,
// a track for each QP, and a flow for each frame.
#pragma once

#include <ostream>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

void write_trace(const Timeline& timeline, std::ostream& out);

}  // namespace rocemu::timeline
