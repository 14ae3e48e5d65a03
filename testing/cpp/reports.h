// The reports of the verbs sanitizer, as `rocemu show --misuses --json` prints them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "testing/cpp/rocemu/testing.h"

namespace rocemu::testing {

/// Reads the reports from the output of `rocemu show --misuses --json`. Throws Error if the text
/// has another form.
std::vector<Report> read_reports(const std::string& json);

/// Maps each mistake to the number of times that it was found.
using ReportCounts = std::map<std::string, uint64_t>;
ReportCounts counts_of(const std::vector<Report>& reports);
/// Returns those of `reports` that `counts` does not contain yet, or not as often.
std::vector<Report> reports_since(const ReportCounts& counts, std::vector<Report> reports);

}  // namespace rocemu::testing
