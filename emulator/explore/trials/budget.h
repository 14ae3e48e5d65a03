// The time of --budget: decides when to try no more faults, so that findings can be repeated, and
// when to stop everything.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace rocemu::explore {

class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  /// Without `total` there is no limit. `jobs` runs are made at a time.
  Budget(std::optional<std::chrono::nanoseconds> total, Clock::time_point begin, size_t jobs);

  /// Reserves time: a run that ended badly in a new place took `took`, and `runs` repetitions will
  /// confirm it.
  void reserve(const std::string& place, Clock::duration took, size_t runs);

  /// Returns whether no run may start or continue.
  bool is_over(Clock::time_point now) const;
  /// Returns whether the rest of the time is needed to confirm findings, so that no more faults are
  /// tried.
  bool is_over_for_trials(Clock::time_point now) const;

 private:
  std::optional<std::chrono::nanoseconds> total_;
  Clock::time_point begin_;
  size_t jobs_;
  std::map<std::string, Clock::duration> reserved_;  // by place
};

}  // namespace rocemu::explore
