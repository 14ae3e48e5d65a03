// Prints the findings of a run when they are found, in a separate process: the tools that look up
// source lines take their time, and `rocemu run` treats each child that ends as a program of the
// run.
#pragma once

#include <sys/types.h>

#include <string>

#include "emulator/os/run_lifetime.h"

namespace rocemu::command {

class FindingPrinter {
 public:
  /// Starts it for the directory of a run (abi/sanitizer_log.h). Call it before RunPrograms is
  /// made.
  explicit FindingPrinter(const std::string& directory);
  ~FindingPrinter();
  FindingPrinter(const FindingPrinter&) = delete;
  FindingPrinter& operator=(const FindingPrinter&) = delete;

  /// Lets it finish (SanitizerReports::finish()) and end. Returns what that returned; true if the
  /// process failed.
  bool finish();

 private:
  pid_t pid_ = -1;
  RunLifetime lifetime_;
};

}  // namespace rocemu::command
