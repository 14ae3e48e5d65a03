// Limits how long the daemon waits for memory that a program has yet to provide. All other programs
// wait in this time, so each program has a budget.
#pragma once

#include <algorithm>
#include <chrono>

namespace rocemu::daemon {

class WaitAllowance {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  /// The limit for one call. A program that provides a page by another thread takes about 10 us,
  /// and one or two time slices on a busy machine.
  static constexpr Duration kMost = std::chrono::milliseconds(20);
  /// The budget for consecutive calls.
  static constexpr Duration kBudget = std::chrono::milliseconds(100);
  /// The limit for one call when the budget is used up. A call on memory that is present takes
  /// less, and must be able to succeed.
  static constexpr Duration kLeast = std::chrono::milliseconds(1);
  /// The budget grows by this fraction of the time that passes.
  static constexpr int kRefill = 20;

  /// Returns how long the daemon may wait for a call at `now`.
  Duration limit(Clock::time_point now) {
    refill(now);
    return std::clamp(left_, kLeast, kMost);
  }
  /// Subtracts the time that the daemon waited for a call, until `now`, from the budget.
  void spend(Clock::time_point now, Duration waited) {
    refill(now);
    left_ = std::max(left_ - waited, Duration::zero());
  }

 private:
  void refill(Clock::time_point now) {
    left_ = std::min(left_ + (now - since_) / kRefill, kBudget);
    since_ = now;
  }

  Duration left_ = kBudget;
  Clock::time_point since_ = Clock::now();
};

}  // namespace rocemu::daemon
