// At which of its CQs a thread waits that polls several in turn. A poll of each that finds nothing
// would wait as many times, before the thread looks where the completion is.
#pragma once

#include <cstdint>

namespace rocemu::provider {

/// Of a thread. CQs are only compared: they may be gone.
class CqRotation {
 public:
  /// The thread looks there.
  void polls(const void* cq) {
    in_a_row_ = latest_ == cq ? in_a_row_ + 1 : 0;
    latest_ = cq;
  }
  /// It found completions: the next ones may come there, too.
  void finds(const void* cq) {
    waits_at_ = cq;
    skipped_ = 0;
  }
  /// It found none. True if it is to wait there, false if it is to go on to the next CQ at once.
  bool waits(const void* cq) {
    if (waits_at_ != nullptr && waits_at_ != cq && ++skipped_ < kMaxSkipped) return false;
    finds(cq);
    return true;
  }
  bool is_of_one() const { return in_a_row_ >= kPollsOfOne; }

 private:
  /// So many polls of one CQ in a row show that the thread looks at no other.
  static constexpr uint32_t kPollsOfOne = 64;
  /// So many empty polls elsewhere show that it no longer looks where it waited. They take some
  /// microseconds, as long as a yield.
  static constexpr uint32_t kMaxSkipped = 32;

  const void* latest_ = nullptr;
  uint32_t in_a_row_ = 0;
  const void* waits_at_ = nullptr;
  uint32_t skipped_ = 0;
};

}  // namespace rocemu::provider
