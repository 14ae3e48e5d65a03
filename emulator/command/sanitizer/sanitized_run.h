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
  /// Returns null without --sanitize. Throws Error if the options cannot be met. In lockstep the
  /// reports are printed at the end: programs continue while the lines of a report are looked up,
  /// so the place of the report among the programs' output would differ from run to run. Otherwise
  /// reports are printed when they are found.
  static std::unique_ptr<SanitizedRun> make(const boost::program_options::variables_map& values);

  std::string directory() const { return directory_.path().string(); }

  /// Prints the remaining findings and writes the report. Returns whether the report contains an
  /// error or cannot be written.
  bool finish();

 private:
  SanitizedRun() = default;

  TemporaryDirectory directory_;
  std::optional<FindingPrinter> printer_;
};

/// Declares that findings are only written to the file of --sanitize-report: they are not printed,
/// and do not change the exit status of `rocemu run`.
void keep_findings_quiet();

}  // namespace rocemu::command
