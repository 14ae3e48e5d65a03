// `rocemu run --sanitize`: the directory that programs and NIC write to, and what becomes of it.
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
  /// Null without --sanitize. Throws Error for what cannot be. In lockstep the reports are printed
  /// at the end: programs continue while the lines of a report are looked up, so the place of a
  /// report among what they print would differ from run to run. Otherwise they are printed when
  /// they are found.
  static std::unique_ptr<SanitizedRun> make(const boost::program_options::variables_map& values);

  std::string directory() const { return directory_.path().string(); }

  /// Prints what is not printed yet and writes the report. Returns whether there is an error in it,
  /// or the report cannot be written.
  bool finish();

 private:
  SanitizedRun() = default;

  TemporaryDirectory directory_;
  std::optional<FindingPrinter> printer_;
};

/// Declares that findings are for the file of --sanitize-report only: they are not printed, and do
/// not change the exit status of `rocemu run`.
void keep_findings_quiet();

}  // namespace rocemu::command
