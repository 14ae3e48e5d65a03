// A timeline as a ladder of text: a column for each lane, an arrow for each frame.
#pragma once

#include <cstddef>
#include <ostream>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

struct TextOptions {
  size_t width = 80;  // more lanes than fit make it wider
  bool colour = false;
};

void write_text(const Timeline& timeline, const TextOptions& options, std::ostream& out);

}  // namespace rocemu::timeline
