// Reads --sanitize and the options that depend on it, for `rocemu run` and `rocemu up`.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <optional>
#include <string>

#include "emulator/sanitizer/rules.h"

namespace rocemu::command {

struct SanitizerOptions {
  sanitizer::Selection rules;
  const sanitizer::Rule* trap = nullptr;  // the rule that stops its thread; null if none does
  std::string suppressions;               // the text of the file
  std::string report;                     // an absolute path; empty if there is none

  /// Writes the options to the directory of findings (abi/sanitizer_log.h). Throws Failure.
  void write(const std::string& directory) const;
};

/// Reads --sanitize and the options that depend on it; returns nothing without --sanitize. Throws
/// UsageError for wrong options, and Failure for a file that cannot be read or written. Empties the
/// file of --sanitize-report.
std::optional<SanitizerOptions> read_sanitizer_options(
    const std::string& command, const boost::program_options::variables_map& values);

}  // namespace rocemu::command
