// Ends an exploration: writes the reports to its folder and to standard output, and computes the
// exit status.
#pragma once

#include "emulator/explore/findings/exploration_report.h"
#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

/// Returns the findings in the file of --known. Throws ExploreError if it is not a report.
Json read_known(const std::string& file);

/// Marks the findings that --known names, and reports all findings. Returns 1 if there is a finding
/// that counts, else 0. A finding counts if it is repeatable, is neither known nor only a warning,
/// and has a verdict that --fail-on names.
int conclude(const Options& options, const Summary& summary,
             const std::map<size_t, Result>& results, std::vector<Finding>& findings);

}  // namespace rocemu::explore
