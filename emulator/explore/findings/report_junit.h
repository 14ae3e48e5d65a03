// Writes report.xml (JUnit): a test for each fault that was tried.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulator/explore/findings/exploration_report.h"

namespace rocemu::explore {

/// Returns the file's text. A test fails if its fault triggers findings; findings that are warnings
/// are only its output. The run without faults is a separate test if it has a finding.
std::string report_as_junit(const Summary& summary, const std::map<size_t, Result>& results,
                            const std::vector<Finding>& findings);

}  // namespace rocemu::explore
