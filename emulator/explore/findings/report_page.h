// Writes report.html: the findings with links to their files, and the verdict on each fault.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/explore/findings/exploration_report.h"

namespace rocemu::explore {

/// Returns `text` escaped for XML and HTML, without control characters, which XML forbids.
std::string escaped(std::string_view text);

/// Returns the page for the findings folder `folder`. It has links to those files of findings that
/// exist in the folder.
std::string report_as_page(const std::filesystem::path& folder, const Summary& summary,
                           const std::map<size_t, Result>& results,
                           const std::vector<Finding>& findings);

}  // namespace rocemu::explore
