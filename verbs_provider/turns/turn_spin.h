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
  /// processor between two looks. If it gets the processor back after a longer time, other work
  /// needs the processor.
  int64_t longest_ns = 50'000;
  /// The largest number of waits without a spin after spins that were too short. So a thread among
  /// many others, whose turns are far apart, loses less than a microsecond in a wait.
  uint32_t most_sleeps = 64;
};
inline constexpr TurnSpinConstants kTurnSpinConstants;

class TurnSpin {
 public:
  /// Returns whether the wait that begins now should begin with a spin.
  bool is_worthwhile() {
    if (sleeps_left_ == 0) return true;
    --sleeps_left_;
    return false;
  }

  /// After a spin that took `took_ns`. Each spin that was too short doubles the number of waits
  /// until the next one.
  void ended(bool has_turn, int64_t took_ns) {
    if (has_turn && took_ns <= kTurnSpinConstants.longest_ns) {
      sleeps_ = 0;
    } else if (sleeps_ == 0) {
      sleeps_ = 1;
    } else if (sleeps_ < kTurnSpinConstants.most_sleeps) {
      sleeps_ *= 2;
    }
    sleeps_left_ = sleeps_;
  }

 private:
  uint32_t sleeps_ = 0;
  uint32_t sleeps_left_ = 0;
};

}  // namespace rocemu::turns
