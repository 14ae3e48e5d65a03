// Draws a timeline as text: a ladder with a column for each lane and an arrow for each frame.
#pragma once

#include <cstddef>
#include <ostream>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

struct TextOptions {
  size_t width = 80;  // the minimum, if there are many lanes
  bool color = false;
};

void write_text(const Timeline& timeline, const TextOptions& options, std::ostream& out);

}  // namespace rocemu::timeline
