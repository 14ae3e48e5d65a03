// The time for which the empty polls of a thread may wait. Programs rely on polls that cost next to
// nothing: some check a socket only after a million polls, and some hold a lock around each. Each
// empty poll therefore earns a little time, and a wait spends it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocemu::provider {

struct BudgetConstants {
  /// Nanoseconds that an empty poll earns for each thread that yields on a processor, and once more
  /// for the daemon. With one thread a million polls wait for a second in all, and a thread that
  /// finds nothing still waits for 95 % of the time, since a poll by itself takes 50 ns.
  int64_t earned_ns = 500;
  /// Replaces earned_ns on machines where switches between threads are expensive
  /// (WaitConstants::dear_switch_ns). There, a thread that continues to poll keeps the processor
  /// from others for less time than a switch to them costs.
  int64_t earned_if_dear_ns = 8'000;
  /// The most that a thread can save, in nanoseconds, and its budget after each completion. A
  /// thousand polls in a row therefore wait for less than 2 ms. No sleep is longer, since the
  /// caller may hold a lock.
  int64_t most_ns = 850'000;
  /// After this number of sleeps in a row without a completion, about 0.1 s, a thread polls without
  /// waiting for more than a time slice. Another thread of the program may be spinning for a lock
  /// that this thread holds during each of its sleeps. If it spins on the same processor, it runs
  /// only while this thread sleeps, and gets the lock only if the scheduler interrupts this thread
  /// between two polls.
  uint32_t vain_sleeps = 128;
  uint32_t polls_without_wait = 131'072;  // some 6 ms
};
inline constexpr BudgetConstants kBudgetConstants;

/// The time for which a thread's empty polls may still wait
class WaitBudget {
 public:
  /// Notes that a poll found a completion: a thread that makes progress may wait for the next one.
  void finds() { *this = WaitBudget(); }

  /// Notes that a poll found nothing, while `pollers` threads yield on a processor
  /// (abi::DoorbellRing::pollers_per_processor).
  void earn(uint32_t pollers, bool switches_are_dear) {
    if (polls_without_wait_ != 0) --polls_without_wait_;
    const int64_t each_ns =
        switches_are_dear ? kBudgetConstants.earned_if_dear_ns : kBudgetConstants.earned_ns;
    left_ns_ = std::min(left_ns_ + each_ns * (1 + int64_t{std::max(pollers, 1u)}),
                        kBudgetConstants.most_ns);
  }

  bool allows_yield() const { return polls_without_wait_ == 0 && left_ns_ > 0; }
  bool allows_sleep(int64_t at_most_ns) const {
    return polls_without_wait_ == 0 && left_ns_ >= at_most_ns;
  }

  /// Notes that a yield took this time. Time beyond the most that a thread can save is not charged:
  /// other threads then kept the processor, as they do at the end of a time slice.
  void yielded(int64_t took_ns) { left_ns_ -= std::min(took_ns, kBudgetConstants.most_ns); }
  void slept(int64_t took_ns) {
    yielded(took_ns);
    if (++vain_sleeps_ < kBudgetConstants.vain_sleeps) return;
    vain_sleeps_ = 0;
    polls_without_wait_ = kBudgetConstants.polls_without_wait;
  }

 private:
  int64_t left_ns_ = kBudgetConstants.most_ns;
  uint32_t vain_sleeps_ = 0;         // since a completion, or since the last polls without a wait
  uint32_t polls_without_wait_ = 0;  // polls without a wait that remain
};

}  // namespace rocemu::provider
