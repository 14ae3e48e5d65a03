// `rocemu run --sanitize`: the directory to which programs and the NIC write findings, and the
// reports about them.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <memory>
#include <optional>
#include <string>

#include "emulator/command/sanitizer/finding_printer.h"
#include "emulator/os/temporary_directory.h"

namespace rocemu::command {

class SanitizedRun {
 public:
  /// Returns null without --sanitize. Throws Error if the options cannot be satisfied. Reports are
  /// printed when they are found, except in lockstep, where they are printed at the end of the run:
  /// programs continue while source lines are looked up, so a report would appear at another place
  /// in the output of each run.
  static std::unique_ptr<SanitizedRun> make(const boost::program_options::variables_map& values);

  std::string directory() const { return directory_.path().string(); }

  /// Prints the remaining findings and writes the file of --sanitize-report. Returns true if there
  /// is an error among the findings, or if the file cannot be written.
  bool finish();

 private:
  SanitizedRun() = default;

  TemporaryDirectory directory_;
  std::optional<FindingPrinter> printer_;
};

/// Makes findings appear only in the file of --sanitize-report: they are not printed, and do not
/// change the exit status of `rocemu run`.
void keep_findings_quiet();

}  // namespace rocemu::command
