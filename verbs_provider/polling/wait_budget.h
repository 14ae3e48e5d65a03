// How long the empty polls of a thread may wait. Programs rely on polls that cost next to nothing:
// some look at a socket after a million of them, and some hold a lock around each. Each empty poll
// therefore earns a little time, and a wait spends it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocemu::provider {

struct BudgetConstants {
  /// Nanoseconds that an empty poll earns for each thread that yields on a processor, and once more
  /// for the daemon. With one thread a million polls wait for a second in all, and a thread that
  /// finds nothing still waits for 95 % of the time, since a poll by itself takes 50 ns.
  int64_t earned_ns = 500;
  /// The same where switches between threads are dear (WaitConstants::dear_switch_ns). There a
  /// thread that polls on keeps the processor from others for less than it costs to let them in.
  int64_t earned_if_dear_ns = 8'000;
  /// Nanoseconds that a thread saves at most, and has after each completion. A thousand polls in a
  /// row then wait for less than 2 ms. No sleep is longer, since the caller may hold a lock.
  int64_t most_ns = 850'000;
  /// After this number of sleeps in a row without a completion, some 0.1 s, a thread polls on for a
  /// time slice and more. Another thread of the program may want a lock that this one holds in each
  /// of its sleeps. If it spins on the same processor, it runs only while this one sleeps, and gets
  /// the lock only if the scheduler interrupts this one between two polls.
  uint32_t vain_sleeps = 128;
  uint32_t polls_without_wait = 131'072;  // some 6 ms
};
inline constexpr BudgetConstants kBudgetConstants;

/// Of a thread.
class WaitBudget {
 public:
  /// A poll finds a completion: a thread that makes progress may wait for the next one.
  void finds() { *this = WaitBudget(); }

  /// A poll finds nothing, while that number of threads yields on a processor
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

  /// A yield took that long. More than a thread can save is not charged: others then kept the
  /// processor, as they do at the end of a time slice.
  void yielded(int64_t took_ns) { left_ns_ -= std::min(took_ns, kBudgetConstants.most_ns); }
  void slept(int64_t took_ns) {
    yielded(took_ns);
    if (++vain_sleeps_ < kBudgetConstants.vain_sleeps) return;
    vain_sleeps_ = 0;
    polls_without_wait_ = kBudgetConstants.polls_without_wait;
  }

 private:
  int64_t left_ns_ = kBudgetConstants.most_ns;
  uint32_t vain_sleeps_ = 0;         // since a completion, or since it polled on
  uint32_t polls_without_wait_ = 0;  // that are still to come
};

}  // namespace rocemu::provider
