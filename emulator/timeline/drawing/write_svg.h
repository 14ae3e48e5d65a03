// Writes a timeline as an SVG picture. It is the text ladder with drawn lines, in light or dark
// colors like the reader's desktop.
#pragma once

#include <cstddef>
#include <ostream>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Writes the picture. `width` is in characters, like the width of the text ladder.
void write_svg(const Timeline& timeline, size_t width, std::ostream& out);

}  // namespace rocemu::timeline
