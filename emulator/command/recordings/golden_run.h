// `rocemu run --expect DIR`: a run that is to be as one that was recorded before.
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

  /// `update`: the run is to be what is expected from now on. Throws UsageError if there is nothing
  /// to expect, or two recordings would be in one place.
  GoldenRun(Places places, bool update);

  /// Where the run at hand is to be recorded.
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
