// The time of --budget: when no more faults are tried, so that what was found can be repeated, and
// when all ends.
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

  /// Without `total` there is no end. Runs go `jobs` at a time.
  Budget(std::optional<std::chrono::nanoseconds> total, Clock::time_point begin, size_t jobs);

  /// A run that ended badly in a new place took `took`; `runs` more like it will confirm that.
  void reserve(const std::string& place, Clock::duration took, size_t runs);

  /// Returns whether nothing may run any more.
  bool is_over(Clock::time_point now) const;
  /// Returns whether the rest is needed to confirm what was found, so that no more is tried.
  bool is_over_for_trials(Clock::time_point now) const;

 private:
  std::optional<std::chrono::nanoseconds> total_;
  Clock::time_point begin_;
  size_t jobs_;
  std::map<std::string, Clock::duration> reserved_;  // by place
};

}  // namespace rocemu::explore
