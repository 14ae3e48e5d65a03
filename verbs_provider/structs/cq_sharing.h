// Whether several threads poll a CQ. They probably hold a lock around each poll, so that a sleep of
// one of them would keep the lock from the others.
#pragma once

#include <cstdint>
#include <utility>

namespace rocemu::provider {

/// Of a CQ. Threads are only compared: they may have ended.
class CqSharing {
 public:
  /// That thread polls the CQ.
  void polls(const void* thread) {
    if (poller_ == thread) {
      if (polls_left_ != 0) --polls_left_;
    } else if (std::exchange(poller_, thread) != nullptr) {
      polls_left_ = kPollsOfOne;
    }
  }
  bool is_shared() const { return polls_left_ != 0; }

 private:
  /// After that number of polls, 50 ms at least, in which no other thread had its turn, the thread
  /// that polls has the CQ for itself.
  static constexpr uint32_t kPollsOfOne = 1 << 20;

  const void* poller_ = nullptr;
  uint32_t polls_left_ = 0;
};

}  // namespace rocemu::provider
