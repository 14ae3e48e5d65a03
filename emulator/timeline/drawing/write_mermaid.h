// Writes a timeline as a sequence diagram in Mermaid's language, which GitHub and GitLab draw in
// Markdown.
#pragma once

#include <ostream>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

void write_mermaid(const Timeline& timeline, std::ostream& out);

}  // namespace rocemu::timeline
