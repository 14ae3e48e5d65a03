// The end of an exploration: reports in its folder and on standard output, and the exit status.
#pragma once

#include "emulator/explore/findings/exploration_report.h"
#include "emulator/explore/trials/options.h"

namespace rocemu::explore {

/// Marks the findings that --known names, and reports all findings. Returns 1 if a finding counts:
/// it is repeatable, not known and not only a warning, and it has a verdict that --fail-on names.
/// Otherwise returns 0.
int conclude(const Options& options, const Summary& summary,
             const std::map<size_t, Result>& results, std::vector<Finding>& findings);

}  // namespace rocemu::explore
