// Writes report.xml (JUnit): a test for each fault that was tried.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "emulator/explore/findings/exploration_report.h"

namespace rocemu::explore {

/// Returns the text of report.xml. A test fails if its fault triggers repeatable findings, and is
/// skipped if none of them is repeatable. Warnings are only the test's output. If the run without
/// faults has a finding, it is a separate test.
std::string report_as_junit(const Summary& summary, const std::map<size_t, Result>& results,
                            const std::vector<Finding>& findings);

}  // namespace rocemu::explore
