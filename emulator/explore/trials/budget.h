// Manages the time of --budget. Decides when no more faults are tried, so that findings can be
// repeated, and when the exploration stops.
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

  /// Creates a budget of the time `total`, or without a limit if `total` is empty. `jobs` is the
  /// number of runs that are made at the same time.
  Budget(std::optional<std::chrono::nanoseconds> total, Clock::time_point begin, size_t jobs);

  /// Reserves time for the `runs` repetitions of a run that ended badly in a new place. The run
  /// took the time `took`.
  void reserve(const std::string& place, Clock::duration took, size_t runs);

  /// Returns whether the budget is used up, so that no run may start or continue.
  bool is_over(Clock::time_point now) const;
  /// Returns whether the rest of the budget is needed to confirm findings, so that no more faults
  /// are tried.
  bool is_over_for_trials(Clock::time_point now) const;

 private:
  std::optional<std::chrono::nanoseconds> total_;
  Clock::time_point begin_;
  size_t jobs_;
  std::map<std::string, Clock::duration> reserved_;  // by place
};

}  // namespace rocemu::explore
