// When a run counts as one that hangs, as far as the NIC knows: nothing can happen any more, or
// only what repeats itself without end.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

class HangWatch {
 public:
  /// `activity` is another number each time that programs did something.
  void see(uint32_t activity);
  uint32_t activity() const { return activity_; }

  /// Time has moved on to what was due.
  void jumped() { ++jumps_; }
  /// Returns whether it is time to look how far the QPs have come.
  bool wants_progress() const;
  /// `progress` is how far they have come. Returns whether only retries happen, that have no end.
  bool sees_progress(std::vector<uint32_t> progress, bool may_repeat);
  /// The same without a look at the QPs.
  void repeats(bool repeats) { repeats_ = repeats; }
  bool repeats() const { return repeats_; }

  /// Nothing can happen any more, or only the same again. Returns whether to report that now, which
  /// happens every 100 ms of real time.
  bool report(Instant real_now);
  bool is_stuck() const { return is_stuck_; }

  /// Returns whether time must stand still until it is decided whether the run hangs: where retries
  /// repeat without an end, for 15 s of real time at most.
  bool awaits_verdict(Instant real_now);

 private:
  uint32_t activity_ = 0;
  bool is_stuck_ = false;
  bool repeats_ = false;
  Instant stuck_since_{}, reported_{};  // in real time
  // Since programs did something, how often time moved on; and at the latest look at the QPs:
  uint64_t jumps_ = 0, looked_at_jump_ = 0;
  std::vector<uint32_t> progress_;
};

}  // namespace rocemu::schedule
