#include "verbs_provider/lead.h"

namespace rocemu::provider {
namespace {

/// What is measured is of so long a time, and of so many requests.
constexpr int64_t kShortestNs = 500'000;
constexpr uint64_t kFewest = 4;
/// Where fewer end in that time, something keeps them.
constexpr int64_t kLongestNs = 5'000'000;
/// Who has received a message waits for others too, for so long.
constexpr int64_t kListensNs = 100'000'000;

}  // namespace

int64_t Lead::left_ns(int64_t now_ns) {
  if (received_) {
    received_ = false;
    quiet_from_ns_ = now_ns + kListensNs;
  }
  const int64_t elapsed = now_ns - begin_ns_;
  if (elapsed >= kShortestNs && (ended_ >= kFewest || elapsed >= kLongestNs)) {
    each_ns_ = elapsed < kLongestNs ? elapsed / static_cast<int64_t>(ended_) : 0;
    begin_ns_ = now_ns;
    ended_ = 0;
  }
  return now_ns < quiet_from_ns_ ? 0 : ahead_ * each_ns_;
}

Lead& lead() {
  thread_local Lead lead;
  return lead;
}

}  // namespace rocemu::provider
