// `rocemu run --expect DIR`: a run that is to be as one that was recorded before.
#pragma once

#include <string>

namespace rocemu::command {

class GoldenRun {
 public:
  /// `update`: the run is recorded anew in `dir`. Throws UsageError if there is nothing to expect.
  GoldenRun(std::string dir, bool update);
  ~GoldenRun();
  GoldenRun(const GoldenRun&) = delete;
  GoldenRun& operator=(const GoldenRun&) = delete;

  /// Where the run at hand is to be recorded.
  const std::string& record_dir() const { return record_dir_; }
  /// After the run: says where it parted from what was expected, on standard error; true if
  /// nowhere.
  bool check() const;

 private:
  std::string dir_;
  bool update_;
  std::string record_dir_;
};

}  // namespace rocemu::command
