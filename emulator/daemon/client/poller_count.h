// Estimates the number of polling threads of programs for each processor, on which the waiting
// policy of clients depends. The estimate rises immediately and falls slowly.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "emulator/engine/base/time.h"

namespace rocemu::daemon {

class PollerCount {
 public:
  /// A client counts as having a polling thread if it rang its doorbell within this time.
  static constexpr engine::Duration kPollsSince = std::chrono::milliseconds(1);

  /// `processors` is the number of processors on which the daemon may run; 0 if it is not known.
  explicit PollerCount(size_t processors)
      : processors_(std::max(static_cast<uint32_t>(processors), 1u)) {}

  /// Notes the number of threads that are yielding at this moment. Threads that wait for events
  /// yield before they block, so only some of them yield at the same time.
  void note(uint32_t yielding) { most_yielding_ = std::max(most_yielding_, yielding); }

  /// Returns whether it is time to count again. The interval grows with the number of clients, so
  /// that counting takes a hundredth of the daemon's time.
  bool is_due(engine::Instant now, size_t clients) const {
    constexpr engine::Duration kInterval = std::chrono::milliseconds(1);
    constexpr engine::Duration kIntervalEach = std::chrono::microseconds(10);
    return now - counted_ >= kInterval + static_cast<int64_t>(clients) * kIntervalEach;
  }

  /// Updates the estimate. `active` is the number of clients that rang within kPollsSince. Returns
  /// whether per_processor() has changed.
  bool count(engine::Instant now, uint32_t active) {
    counted_ = now;
    const uint32_t counted = std::max(std::exchange(most_yielding_, 0u), active);
    pollers_ = std::max(counted, pollers_ - (pollers_ + 7) / 8);
    const uint32_t each = (pollers_ + processors_ - 1) / processors_;
    return std::exchange(per_processor_, each) != each;
  }

  uint32_t per_processor() const { return per_processor_; }

 private:
  uint32_t processors_;
  uint32_t most_yielding_ = 0;  // at the same time, since the latest count
  uint32_t pollers_ = 0;        // falls slowly
  uint32_t per_processor_ = 0;
  engine::Instant counted_{};
};

}  // namespace rocemu::daemon
