// Writes findings to files for other tools.
#pragma once

#include <string>
#include <vector>

#include "emulator/command/sanitizer/finding_reader.h"

namespace rocemu::command {

enum class ReportFormat { kJson, kSarif, kJunit };

/// Returns the format that belongs to the file's extension. Throws UsageError for an unknown
/// extension.
ReportFormat report_format(const std::string& file);

/// Returns the findings as text in the format. The names of files below `root` are relative to
/// `root`, because GitHub needs that.
std::string to_text(const std::vector<Misuse>& findings, ReportFormat format,
                    const std::string& root);

}  // namespace rocemu::command
