#include "emulator/explore/trials/budget.h"

#include <algorithm>

namespace rocemu::explore {
namespace {

/// The estimated time of a repetition, as a multiple of the first run's time. A repetition whose
/// files are kept takes longer than the first run, because it also writes a capture and stacks.
constexpr double kMargin = 1.5;
/// The largest part of the budget that confirmations may use. Otherwise a few slow findings could
/// prevent the trial of the other faults.
constexpr double kMaxForConfirmation = 0.5;

}  // namespace

Budget::Budget(std::optional<std::chrono::nanoseconds> total, Clock::time_point begin, size_t jobs)
    : total_(total), begin_(begin), jobs_(std::max(jobs, size_t{1})) {}

void Budget::reserve(const std::string& place, Clock::duration took, size_t runs) {
  // If one run takes longer than all confirmations together may take, no time is reserved for it.
  if (total_ && took > kMaxForConfirmation * *total_) return;
  reserved_.emplace(place, took * runs);
}

bool Budget::is_over(Clock::time_point now) const {
  return total_ && now - begin_ >= *total_;
}

bool Budget::is_over_for_trials(Clock::time_point now) const {
  if (!total_) return false;
  std::chrono::duration<double> needed{};
  for (const auto& [place, time] : reserved_) needed += time;
  needed *= kMargin / static_cast<double>(jobs_);
  const std::chrono::duration<double> total = *total_;
  return now - begin_ >= total - std::min(needed, kMaxForConfirmation * total);
}

}  // namespace rocemu::explore
