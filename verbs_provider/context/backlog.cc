#include "verbs_provider/context/backlog.h"

#include <algorithm>
#include <utility>

namespace rocemu::provider {
namespace {

/// A measurement covers at least this time and this number of completions.
constexpr int64_t kMinNs = 500'000;
constexpr uint32_t kFewest = 4;
/// A measurement with fewer completions ends after this time, because something delays them.
constexpr int64_t kMaxNs = 5'000'000;
/// A thread counts as sending or receiving for this time after its latest message.
constexpr int64_t kLatelyNs = 100'000'000;
/// If the NIC still has work for kLongLeadNs, a thread stops polling for half of the time that this
/// work takes, but for kMaxAwayNs at most, since other work of the thread waits in the meantime.
constexpr int64_t kLongLeadNs = 800'000;
constexpr int64_t kMaxAwayNs = 400'000;

}  // namespace

void Backlog::Flow::look(int64_t now_ns) {
  if (std::exchange(is_fresh, false)) latest_ns = now_ns;
  const int64_t elapsed = now_ns - begin_ns;
  if (elapsed < kMinNs || (completions < kFewest && elapsed < kMaxNs)) return;
  const bool flows = elapsed < kMaxNs;
  const auto each = [&](uint64_t count) {
    return std::max<int64_t>(elapsed / static_cast<int64_t>(std::max<uint64_t>(count, 1)), 1);
  };
  completion_ns = flows ? each(completions) : 0;
  request_ns = flows ? each(ended) : 0;
  begin_ns = now_ns;
  completions = 0;
  ended = 0;
}

uint32_t Backlog::Flow::completions_to_await() const {
  const int64_t left_ns = ahead * request_ns;
  if (left_ns < kLongLeadNs) return 0;
  const int64_t away_ns = std::min(left_ns / 2, kMaxAwayNs);
  return static_cast<uint32_t>(std::max<int64_t>(away_ns / completion_ns, 1));
}

uint32_t Backlog::completions_to_await(int64_t now_ns) {
  sends_.look(now_ns);
  receives_.look(now_ns);
  const bool sends = now_ns - sends_.latest_ns < kLatelyNs;
  const bool receives = now_ns - receives_.latest_ns < kLatelyNs;
  if (sends == receives) return 0;
  return (sends ? sends_ : receives_).completions_to_await();
}

Backlog& backlog() {
  thread_local Backlog backlog;
  return backlog;
}

}  // namespace rocemu::provider
