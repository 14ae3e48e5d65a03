// A timeline as a web page in one file, which opens without a server.
#pragma once

#include <ostream>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

void write_page(const Timeline& timeline, std::ostream& out);

}  // namespace rocemu::timeline
