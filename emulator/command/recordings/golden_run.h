// `rocemu run --expect DIR`: compares a run with one that was recorded before.
#pragma once

#include <filesystem>
#include <optional>

#include "emulator/os/temporary_directory.h"

namespace rocemu::command {

class GoldenRun {
 public:
  /// Directories of recordings; all but the first may be empty.
  struct Places {
    std::filesystem::path expected;
    std::filesystem::path record;  // where the run at hand is recorded, if the user said so
    std::filesystem::path actual;  // where it stays if it was not as expected
  };

  /// Compares the run with the expected one; with `update` it replaces that. Throws UsageError if
  /// there is nothing to expect, or if two recordings would have the same directory.
  GoldenRun(Places places, bool update);

  /// The directory in which the current run must be recorded.
  const std::filesystem::path& record_dir() const { return record_dir_; }
  /// After the run: says where it parted from what was expected, on standard error; true if
  /// nowhere.
  bool check() const;

 private:
  bool update() const;
  bool is_as_expected() const;
  void keep_actual() const;

  Places places_;
  bool update_;
  std::filesystem::path record_dir_;
  std::optional<TemporaryDirectory> temporary_;  // if nobody wants the run itself
};

}  // namespace rocemu::command
