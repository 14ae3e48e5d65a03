// Detects that several threads poll a CQ. They probably hold a lock around each poll, so a sleep of
// one of them would keep the lock from the others.
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
    } else if (std::exchange(poller_, thread) != nullptr) {
      polls_left_ = kPollsOfOne;
    }
  }
  bool is_shared() const { return polls_left_ != 0; }

 private:
  /// After this number of polls, which take at least 50 ms, without one by another thread, the CQ
  /// counts as polled by one thread only.
  static constexpr uint32_t kPollsOfOne = 1 << 20;

  const void* poller_ = nullptr;
  uint32_t polls_left_ = 0;
};

}  // namespace rocemu::provider
