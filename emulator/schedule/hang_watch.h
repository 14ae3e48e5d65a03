// Decides when a run counts as hanging, as far as the NIC can know: nothing can happen any more, or
// only endless repetitions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

class HangWatch {
 public:
  /// Notes the activity, which changes each time that programs act.
  void see(uint32_t activity);
  uint32_t activity() const { return activity_; }

  /// Notes that time has moved to the next due event. `moves_frames`: frames were crossing a
  /// simulated network, so that the event may be one of thousands before a retry ends.
  void jumped(bool moves_frames = false);
  /// Returns whether it is time to check the progress of the QPs.
  bool wants_progress() const;
  /// `progress` is the progress of the QPs. Returns whether only endless retries happen.
  bool sees_progress(std::vector<uint32_t> progress, bool may_repeat);
  /// Notes whether only retries happen, without a check of the QPs.
  void repeats(bool repeats) { repeats_ = repeats; }
  bool repeats() const { return repeats_; }

  /// Notes that nothing can happen any more, or only repetitions. Returns whether to report this
  /// now, which happens every 100 ms of real time.
  bool report(Instant real_now);
  bool is_stuck() const { return is_stuck_; }

  /// Returns whether the clock must stop until it is decided whether the run hangs: if retries
  /// repeat endlessly, for at most 15 s of real time.
  bool awaits_verdict(Instant real_now);

 private:
  uint32_t activity_ = 0;
  bool is_stuck_ = false;
  bool repeats_ = false;
  Instant stuck_since_{}, reported_{};  // in real time
  // These count how often time has moved since programs acted: until now, and until the latest
  // check of the QPs.
  uint64_t jumps_ = 0, looked_at_jump_ = 0;
  uint64_t jumps_of_frames_ = 0;  // of which most are not counted in jumps_
  std::vector<uint32_t> progress_;
};

}  // namespace rocemu::schedule
