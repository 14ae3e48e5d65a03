// Decides when the daemon checks whether held threads still spin (spinning_threads.h). A check of a
// loop of 200 instructions takes 4 ms on a virtual machine, and a turn 0.1 ms. While other threads
// progress, the checks therefore follow after 1, 2, 4 and so on of their turns.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocemu {

class SpinChecks {
 public:
  /// The maximum number of turns with progress between two checks.
  static constexpr uint32_t kMaxTurns = 64;

  /// Notes that another thread has had a turn with progress.
  void turn_progressed() { ++turns_; }
  /// Returns whether the next check is due, even though other threads progress.
  bool is_due() const { return turns_ >= interval_; }
  /// Notes a check. `all_still_spin` is true if there were threads to check, and all still spin.
  void checked(bool all_still_spin) {
    turns_ = 0;
    interval_ = all_still_spin ? std::min(2 * interval_, kMaxTurns) : 1;
  }

 private:
  uint32_t turns_ = 0;  // with progress, since the latest check
  uint32_t interval_ = 1;
};

}  // namespace rocemu
