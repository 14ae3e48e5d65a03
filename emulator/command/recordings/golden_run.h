// `rocemu run --expect DIR`: compares a run with an earlier recording.
#pragma once

#include <filesystem>
#include <optional>

#include "emulator/os/temporary_directory.h"

namespace rocemu::command {

class GoldenRun {
 public:
  /// The directories of recordings. All except the first may be empty.
  struct Directories {
    std::filesystem::path expected;
    std::filesystem::path record;  // where the current run is recorded, if the user chose it
    std::filesystem::path actual;  // where a run that differs is kept
  };

  /// Prepares a comparison of the run with the expected one or, with `update`, the replacement of
  /// the expected run. Throws UsageError if there is no expected run, or if two recordings would
  /// have the same directory.
  GoldenRun(Directories directories, bool update);

  /// Returns the directory into which the current run must be recorded.
  const std::filesystem::path& record_dir() const { return record_dir_; }
  /// Prints the first difference from the expected run to standard error. Must be called after the
  /// run. Returns true if there is no difference.
  bool check() const;

 private:
  bool update() const;
  bool is_as_expected() const;
  void keep_actual() const;

  Directories directories_;
  bool update_;
  std::filesystem::path record_dir_;
  std::optional<TemporaryDirectory> temporary_;  // used if the run itself need not be kept
};

}  // namespace rocemu::command
