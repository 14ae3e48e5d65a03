// Chooses the CQ at which a thread that polls several CQs in turn waits. If each empty poll waited,
// the thread would wait once for every empty CQ before it polled the CQ with the completion.
#pragma once

#include <cstdint>

namespace rocemu::provider {

/// The CQs of one thread. CQs are only compared, since they may have been destroyed.
class CqRotation {
 public:
  /// Notes that the thread polls the CQ.
  void polls(const void* cq) {
    in_a_row_ = latest_ == cq ? in_a_row_ + 1 : 0;
    latest_ = cq;
  }
  /// Notes that the thread found completions: the next ones are likely to arrive there, too.
  void finds(const void* cq) {
    waits_at_ = cq;
    skipped_ = 0;
  }
  /// Notes that the thread found no completion. Returns true if it must wait at this CQ, false if
  /// it must poll the next CQ at once. A thread that polls a CQ again, without another one in
  /// between, waits for this CQ: for example for the completion of a send, and then in another CQ
  /// for the reply.
  bool waits(const void* cq) {
    const bool polls_again = latest_ == cq && in_a_row_ != 0;
    if (waits_at_ != nullptr && waits_at_ != cq && !polls_again && ++skipped_ < kMaxSkipped) {
      return false;
    }
    finds(cq);
    return true;
  }
  bool is_of_one() const { return in_a_row_ >= kPollsOfOne; }

 private:
  /// After this number of polls of one CQ in a row, the thread counts as polling only this CQ.
  static constexpr uint32_t kPollsOfOne = 64;
  /// After this number of empty polls of other CQs, the thread counts as no longer polling the CQ
  /// at which it waited. The polls take some microseconds, as long as a yield.
  static constexpr uint32_t kMaxSkipped = 32;

  const void* latest_ = nullptr;
  uint32_t in_a_row_ = 0;
  const void* waits_at_ = nullptr;
  uint32_t skipped_ = 0;
};

}  // namespace rocemu::provider
