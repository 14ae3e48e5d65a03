// Writes a timeline as a web page in a single file, which a browser can open without a server.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// A function that returns the explanation of a topic, as `rocemu explain` prints it; empty if
/// there is none.
using Explain = std::function<std::string(const std::string& topic)>;

/// Writes the data of the page as a JSON object with the keys "source", "notes", "lanes", "topics",
/// "rows", "folds", "differences" and "happenings". arrange.h explains rows and folds.
void write_json(const Timeline& timeline, const Explain& explain, std::ostream& out);
void write_page(const Timeline& timeline, const Explain& explain, std::ostream& out);

}  // namespace rocemu::timeline
