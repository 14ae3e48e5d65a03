// `rocemu run --sanitize`: the directory that programs and NIC write to, and what is
// made of it in the end.
#pragma once

#include <boost/program_options/variables_map.hpp>
#include <memory>
#include <optional>
#include <string>

#include "emulator/command/sanitizer/finding_files.h"
#include "emulator/command/sanitizer/suppressions.h"
#include "emulator/os/temporary_directory.h"

namespace rocemu::command {

class SanitizedRun {
 public:
  /// Null without --sanitize. Throws Error for what cannot be.
  static std::unique_ptr<SanitizedRun> make(const boost::program_options::variables_map& values);

  std::string directory() const { return directory_.path().string(); }

  /// Prints what was found and writes the report. Returns whether there is an error in it, or the
  /// report cannot be written.
  bool finish() const;

 private:
  SanitizedRun() = default;

  TemporaryDirectory directory_;
  std::string report_;  // empty if there is none
  Suppressions suppressions_;
};

}  // namespace rocemu::command
