// The end of an exploration: reports in its folder and on standard output, and the exit status.
#pragma once

#include "emulator/explore/explore.h"
#include "emulator/explore/report.h"

namespace rocemu::explore {

/// Marks the findings that --known names, reports all, and returns 1 if there is one that counts:
/// that is repeatable, not known, and of a verdict that --fail-on names. Else returns 0.
int conclude(const Options& options, const Summary& summary,
             const std::map<size_t, Result>& results, std::vector<Finding>& findings);

}  // namespace rocemu::explore
