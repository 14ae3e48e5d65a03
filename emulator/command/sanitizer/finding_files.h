// Findings in files that other tools read.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/sanitizer/findings.h"

namespace rocemu::command {

enum class ReportFormat { kJson, kSarif, kJunit };

/// By the file's extension. Throws UsageError for another one.
ReportFormat report_format(const std::string& file);

/// `root`: files below it are named relative to it, for GitHub.
std::string to_text(const std::vector<Misuse>& findings, ReportFormat format,
                    const std::string& root);

}  // namespace rocemu::command
