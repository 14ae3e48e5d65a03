// Decides when a run counts as hanging, from what the NIC can observe: nothing can happen any more,
// or retries are repeated endlessly.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

class HangWatch {
 public:
  /// Notes the activity, a number that changes each time that programs act.
  void see(uint32_t activity);
  uint32_t activity() const { return activity_; }

  /// Notes that the clock has advanced to the next due event. If `moves_frames` is true, frames
  /// were crossing a simulated network, so the event may be one of thousands before a retry ends.
  void jumped(bool moves_frames = false);
  /// Returns whether it is time to check the progress of the QPs.
  bool wants_progress() const;
  /// Notes the progress of each QP. `may_repeat` is false while the NIC is paused or waits for
  /// memory. Returns whether only endless retries happen.
  bool sees_progress(std::vector<uint32_t> progress, bool may_repeat);
  /// Notes whether only endless retries happen, if this is known without a check of the QPs.
  void repeats(bool repeats) { repeats_ = repeats; }
  bool repeats() const { return repeats_; }

  /// Notes that nothing can happen any more, or that retries are repeated endlessly. Returns
  /// whether to report this now; it is reported at intervals of real time from 1 ms to 128 ms.
  bool report(Instant real_now);
  bool is_stuck() const { return is_stuck_; }

  /// Returns whether the clock must stop while `rocemu` decides whether the run hangs. The clock
  /// stops only for endless retries, and at most for 15 s of real time.
  bool awaits_verdict(Instant real_now);

 private:
  uint32_t activity_ = 0;
  bool is_stuck_ = false;
  bool repeats_ = false;
  Instant stuck_since_{}, reported_{};  // in real time
  Duration interval_{};                 // until the next report
  // The number of advances of the clock since programs last acted, and the value of this number at
  // the latest check of the QPs.
  uint64_t jumps_ = 0, looked_at_jump_ = 0;
  uint64_t jumps_of_frames_ = 0;  // of which most are not counted in jumps_
  std::vector<uint32_t> progress_;
};

}  // namespace rocemu::schedule
