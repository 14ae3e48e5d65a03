// Findings in files that other tools read.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/sanitizer/finding_reader.h"

namespace rocemu::command {

enum class ReportFormat { kJson, kSarif, kJunit };

/// Returns the format that belongs to the file's extension. Throws UsageError if none does.
ReportFormat report_format(const std::string& file);

/// `root`: files below it are named relative to it, for GitHub.
std::string to_text(const std::vector<Misuse>& findings, ReportFormat format,
                    const std::string& root);

}  // namespace rocemu::command
