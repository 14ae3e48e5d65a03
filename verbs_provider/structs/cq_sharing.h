// Detects that several threads poll a CQ. They probably hold a lock around each poll, so a sleep of
// one of them would keep the lock from the others.
//
// UCX, for example, has a thread that polls now and then, beside the one that polls all the time.
// Both use a spin lock. If the first one yielded in its poll, the other would spin for the rest of
// its time slice.
#pragma once

#include <cstdint>
#include <utility>

namespace rocemu::provider {

/// The polling threads of a CQ. Threads are only compared, since they may have ended.
class CqSharing {
 public:
  /// Notes that the thread polls the CQ.
  void polls(const void* thread) {
    if (poller_ == thread) {
      if (polls_left_ != 0) --polls_left_;
      if (++polls_in_a_row_ >= kPollsOfRegular) is_visit_ = false;
    } else if (std::exchange(poller_, thread) != nullptr) {
      polls_left_ = kPollsOfOne;
      is_visit_ = polls_in_a_row_ >= kPollsOfRegular;
      polls_in_a_row_ = 0;
    }
  }
  bool is_shared() const { return polls_left_ != 0; }
  /// Returns whether the latest poll was a visit: one of a few polls by a thread between many polls
  /// by another one.
  bool is_visit() const { return is_visit_; }

 private:
  /// After this number of polls, which take at least 50 ms, without one by another thread, the CQ
  /// counts as polled by one thread only.
  static constexpr uint32_t kPollsOfOne = 1 << 20;
  /// After this number of polls without one by another thread, a thread polls regularly.
  static constexpr uint32_t kPollsOfRegular = 64;

  const void* poller_ = nullptr;
  uint32_t polls_left_ = 0;
  uint32_t polls_in_a_row_ = 0;
  bool is_visit_ = false;
};

}  // namespace rocemu::provider
