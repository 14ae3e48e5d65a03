// Decides whether a thread that waits for a child process (wait4(2)) needs a turn. Such a wait can
// end only after something happened to a process: a process ended or stopped, or a thread has a
// pending signal. Without this decision, each thread of a shell would take a turn in every round.
#pragma once

#include <cstdint>
#include <map>

namespace rocemu::daemon {

class ChildWaits {
 public:
  /// Notes that something may have happened to any process.
  void happened() { ++events_; }
  /// Lets all waits be checked once in kRounds rounds, because signals can come from outside.
  void begin_round() {
    if (++rounds_ % kRounds == 0) happened();
  }
  /// Notes that the thread in that slot has its turn now, and sees everything that has happened.
  void has_turn(uint32_t slot) { seen_[slot] = events_; }
  /// Returns whether something has happened since the latest turn of the thread in that slot.
  bool may_have_ended(uint32_t slot) const {
    const auto at = seen_.find(slot);
    return at == seen_.end() || at->second != events_;
  }

 private:
  static constexpr uint64_t kRounds = 256;
  uint64_t events_ = 1, rounds_ = 0;
  std::map<uint32_t, uint64_t> seen_;  // the number of events at the latest turn of each slot
};

}  // namespace rocemu::daemon
