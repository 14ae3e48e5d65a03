// Preemption: where `--schedule N` takes a thread's turn away between two of its verb or rdma_cm
// calls, and for how long. Until the thread has its turn again, others run and the NIC acts.
#pragma once

#include <chrono>
#include <cstdint>

#include "emulator/schedule/thread.h"

namespace rocemu::schedule {

struct PreemptionConstants {
  /// The mean number of calls from one preemption of a thread to the next is a power of two, from 2
  /// to 256; each schedule has one. Some bugs need many preemptions, others few.
  uint32_t intervals = 8;
  /// A preempted thread continues at the same instant, after others and the NIC, or this number of
  /// powers of two later: 1 us, in which a frame arrives, to 1,024 us.
  uint32_t delays = 11;
  Duration least_delay = std::chrono::microseconds(1);
  /// A preempted thread waits no longer than for this number of turns, all at one instant, in which
  /// threads did something: a program may look again and again, by means that take no virtual time,
  /// for what the preempted thread does.
  uint32_t turns = 100;
};
inline constexpr PreemptionConstants kPreemptionConstants;

/// All numbers are drawn from the schedule's, the thread's serial and the count of the thread's
/// preemptions: they do not depend on what happens elsewhere.
class Preemption {
 public:
  /// With `schedule` 0 no thread is preempted.
  explicit Preemption(uint64_t schedule);

  /// Returns after how many calls of its next turns the thread is preempted; 0 for never. It keeps
  /// what is left of an earlier number.
  uint32_t calls_for(const Thread& thread) const;
  /// Returns when the thread, which was preempted, has its next turn.
  Instant ends(const Thread& thread) const;
  /// The mean number of calls between two preemptions.
  uint32_t interval() const { return interval_; }

 private:
  uint64_t draw(const Thread& thread, uint64_t kind) const;

  uint64_t schedule_;
  uint32_t interval_;
};

}  // namespace rocemu::schedule
