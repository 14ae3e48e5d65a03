// Makes the reports of a run with --sanitize from the run's directory of findings
// (abi/sanitizer_log.h). Findings are printed as they are found, and written to a file at the end
// of the run.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "emulator/command/sanitizer/finding_reader.h"
#include "emulator/command/sanitizer/suppressions.h"

namespace rocemu::command {

/// Writes the findings to `file`, unless the name is empty. Returns true if there is an error among
/// the findings, or if the file cannot be written.
bool write_all(const std::vector<Misuse>& findings, const std::string& file);
/// Prints the findings and a summary to standard error, then writes `file` and returns the same as
/// write_all().
bool report_all(const std::vector<Misuse>& findings, const std::string& file);

class SanitizerReports {
 public:
  explicit SanitizerReports(const std::string& directory);

  /// Returns the findings so far, without those that the user has suppressed.
  std::vector<Misuse> read(Waits waits);

  /// Prints the findings that were made since the last call to standard error, each with one
  /// write(2).
  void print_new();
  /// Prints the remaining findings and a summary, and writes the file of --sanitize-report. Returns
  /// true if there is an error among the findings, or if the file cannot be written.
  bool finish();
  /// Writes the file of --sanitize-report, if that option was given, without printing the findings.
  /// Returns false, after printing the error, if the file cannot be written.
  bool write_file();

 private:
  void print(const std::vector<Misuse>& findings);

  FindingReader reader_;
  Suppressions suppressions_;
  std::string report_;             // empty if there is none
  std::set<std::string> printed_;  // identities
};

}  // namespace rocemu::command
