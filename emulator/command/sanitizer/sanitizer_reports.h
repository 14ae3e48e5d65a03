// The reports of a run with --sanitize, from its directory (abi/sanitizer_log.h). They are printed
// as they are found, and at the end written to a file.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "emulator/command/sanitizer/finding_reader.h"
#include "emulator/command/sanitizer/suppressions.h"

namespace rocemu::command {

/// Writes the findings to `file`, unless its name is empty. Returns whether there is an error among
/// the findings, or the file cannot be written.
bool write_all(const std::vector<Misuse>& findings, const std::string& file);
/// Prints the findings and a summary to standard error, then does the same as write_all().
bool report_all(const std::vector<Misuse>& findings, const std::string& file);

class SanitizerReports {
 public:
  explicit SanitizerReports(const std::string& directory);

  /// Returns the findings so far, without those that are suppressed.
  std::vector<Misuse> read(Waits waits);

  /// Prints the findings since the last call to standard error, each with one write(2).
  void print_new();
  /// Prints the remaining findings and a summary, and writes the file of --sanitize-report. Returns
  /// whether there is an error among the findings, or the file cannot be written.
  bool finish();
  /// Writes the file of --sanitize-report, if there is this option, and prints nothing. Returns
  /// whether that succeeded.
  bool write_file();

 private:
  void print(const std::vector<Misuse>& findings);

  FindingReader reader_;
  Suppressions suppressions_;
  std::string report_;             // empty if there is none
  std::set<std::string> printed_;  // identities
};

}  // namespace rocemu::command
