// Limits how long the daemon waits for memory that a program has not provided yet. All other
// programs wait during this time, so each program has a budget.
#pragma once

#include <algorithm>
#include <chrono>

namespace rocemu::daemon {

class WaitAllowance {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = Clock::duration;

  /// The longest time for which the daemon waits for one call. If another thread of the program
  /// provides the page, this takes about 10 us, or one or two time slices on a busy machine.
  static constexpr Duration kMost = std::chrono::milliseconds(20);
  /// The maximum of the budget, from which the time of every wait is subtracted.
  static constexpr Duration kBudget = std::chrono::milliseconds(100);
  /// The longest wait for one call when the budget is used up. It suffices for a call that accesses
  /// present memory, which must still succeed.
  static constexpr Duration kLeast = std::chrono::milliseconds(1);
  /// The budget grows by 1/kRefill of the time that passes.
  static constexpr int kRefill = 20;

  /// Returns how long the daemon may wait for a call that begins at `now`.
  Duration limit(Clock::time_point now) {
    refill(now);
    return std::clamp(left_, kLeast, kMost);
  }
  /// Subtracts the time that the daemon has waited for a call from the budget. `now` is the end of
  /// the wait.
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
