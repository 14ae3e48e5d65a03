// Prints the findings of a run as they are found, in a separate process: looking up source lines
// takes long, and `rocemu run` treats each child that ends as a program of the run.
#pragma once

#include <sys/types.h>

#include <string>

#include "emulator/os/run_lifetime.h"

namespace rocemu::command {

class FindingPrinter {
 public:
  /// Starts the process for the directory of a run (abi/sanitizer_log.h). Must be called before
  /// RunPrograms is constructed.
  explicit FindingPrinter(const std::string& directory);
  ~FindingPrinter();
  FindingPrinter(const FindingPrinter&) = delete;
  FindingPrinter& operator=(const FindingPrinter&) = delete;

  /// Waits until the process has finished the reports (SanitizerReports::finish()) and has ended.
  /// Returns the result of SanitizerReports::finish(), or true if the process failed.
  bool finish();

 private:
  pid_t pid_ = -1;
  RunLifetime lifetime_;
};

}  // namespace rocemu::command
