// Writes a timeline as a web page in one file, which opens without a server.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// Returns the explanation of a topic; empty if there is none.
using Explain = std::function<std::string(const std::string& topic)>;

/// Writes the data of the page: {"source", "notes", "lanes", "topics", "rows", "folds",
/// "differences", "happenings"}; arrange.h explains rows and folds.
void write_json(const Timeline& timeline, const Explain& explain, std::ostream& out);
void write_page(const Timeline& timeline, const Explain& explain, std::ostream& out);

}  // namespace rocemu::timeline
