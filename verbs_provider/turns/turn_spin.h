// Decides whether a thread that has returned its turn spins until the next one, before it sleeps.
//
// While one of two programs has its turn, the other one often gets the next turn some microseconds
// later. If it sleeps in the meantime, so does its processor, and on a virtual machine waking a
// processor takes longer than most turns. The decision is a pure function of measurements, so that
// tests need no clock (docs/design/turns.md).
#pragma once

#include <cstdint>

namespace rocemu::turns {

struct TurnSpinConstants {
  /// The longest spin, which takes as long as falling asleep and being woken. The thread yields its
  /// processor between two looks.
  int64_t longest_ns = 50'000;
  /// The largest number of waits without a spin after spins that were too short. A thread among
  /// many others, whose turns are far apart, thus loses less than a microsecond in a wait.
  uint32_t most_sleeps = 64;
  /// The duration from which a yield counts as long: other work has used the processor for a part
  /// of its time slice. A sleeping thread gets the processor sooner than one that has yielded.
  int64_t long_yield_ns = 300'000;
  /// The time without spins after a long yield, and its largest value: it doubles with each long
  /// yield that soon follows the previous one. Long yields take at most a tenth of the time.
  int64_t shortest_pause_ns = 30'000'000, longest_pause_ns = 1'000'000'000;
};
inline constexpr TurnSpinConstants kTurnSpinConstants;

class TurnSpin {
 public:
  /// Returns whether the wait that begins at `now_ns` should begin with a spin.
  bool is_worthwhile(int64_t now_ns) {
    if (now_ns < resumes_ns_) return false;
    if (sleeps_left_ == 0) return true;
    --sleeps_left_;
    return false;
  }

  /// After a spin that ended at `now_ns` and took `took_ns`.
  void ended(bool has_turn, int64_t took_ns, int64_t now_ns) {
    if (took_ns >= kTurnSpinConstants.long_yield_ns) {
      pause(now_ns);
    } else if (has_turn) {
      sleeps_ = 0;
    } else if (sleeps_ == 0) {
      sleeps_ = 1;
    } else if (sleeps_ < kTurnSpinConstants.most_sleeps) {
      sleeps_ *= 2;
    }
    sleeps_left_ = sleeps_;
  }

 private:
  void pause(int64_t now_ns) {
    const bool is_soon = now_ns - resumes_ns_ < pause_ns_;
    pause_ns_ = is_soon ? 2 * pause_ns_ : kTurnSpinConstants.shortest_pause_ns;
    if (pause_ns_ > kTurnSpinConstants.longest_pause_ns)
      pause_ns_ = kTurnSpinConstants.longest_pause_ns;
    resumes_ns_ = now_ns + pause_ns_;
  }

  uint32_t sleeps_ = 0;
  uint32_t sleeps_left_ = 0;
  int64_t pause_ns_ = 0;
  int64_t resumes_ns_ = 0;
};

}  // namespace rocemu::turns
