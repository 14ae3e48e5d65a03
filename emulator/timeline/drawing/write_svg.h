// Writes a timeline as a picture: the text ladder with drawn lines, light or dark like the reader's
// system.
#pragma once

#include <cstddef>
#include <ostream>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Writes the picture. `width` is in characters, like that of the text ladder.
void write_svg(const Timeline& timeline, size_t width, std::ostream& out);

}  // namespace rocemu::timeline
