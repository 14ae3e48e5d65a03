// Manages the time of --budget: decides when no more faults are tried, so that findings can be
// repeated, and when everything stops.
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

  /// Creates a budget of `total`, or without a limit if `total` is empty. `jobs` runs are made at
  /// the same time.
  Budget(std::optional<std::chrono::nanoseconds> total, Clock::time_point begin, size_t jobs);

  /// Reserves time for a run that ended badly in a new place and took `took`: `runs` repetitions
  /// will confirm it.
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
