#include "verbs_provider/polling/cpu_placement.h"

#include <cerrno>
#include <ctime>
#include <utility>

#include <sched.h>

namespace rocemu::provider {
namespace {

/// A thread that takes longer between two waits has other things to do: so much for itself and for
/// each completion, and so much for each work request.
constexpr int64_t kMaxNs = 750;
constexpr int64_t kMaxPostNs = 400;
/// Waits beside the daemon, each for a completion that came, after which it is no accident.
constexpr uint32_t kTiring = 16;
/// So many more waits after other things than others.
constexpr uint32_t kRegretting = 8;
/// The kernel may bring a thread back; where there are many it has reasons to.
constexpr int64_t kStaysNs = 10'000'000;
/// A thread for which moving was worse stays for good, or nearly.
constexpr int64_t kStaysAfterRegretNs = 1'000'000'000;

}  // namespace

bool CpuPlacement::begins(bool beside_daemon, int64_t now_ns) {
  const bool late = is_late(now_ns);
  const uint64_t found = std::exchange(found_, 0);
  posted_ = 0;
  return beside_daemon ? leaves_daemon(late, found != 0, now_ns) : goes_back(late, now_ns);
}

bool CpuPlacement::may_sleep(int64_t now_ns) {
  if (is_late(now_ns)) return false;
  found_ = posted_ = 0;
  return true;
}

bool CpuPlacement::is_late(int64_t now_ns) const {
  const auto found = static_cast<int64_t>(found_), posted = static_cast<int64_t>(posted_);
  return now_ns - ended_ns_ > kMaxNs * (1 + found) + kMaxPostNs * posted;
}

bool CpuPlacement::leaves_daemon(bool is_late, bool is_new, int64_t now_ns) {
  if (is_late) {
    if (waits_ > 0) --waits_;
  } else if (is_new) {
    ++waits_;
  }
  if (waits_ < kTiring || now_ns < stays_until_ns_) return false;
  waits_ = delays_ = 0;
  left_ = true;
  stays_until_ns_ = now_ns + kStaysNs;
  return true;
}

bool CpuPlacement::goes_back(bool is_late, int64_t now_ns) {
  if (!left_) return false;
  if (!is_late) {
    if (delays_ > 0) --delays_;
    return false;
  }
  if (++delays_ < kRegretting) return false;
  left_ = false;
  stays_until_ns_ = now_ns + kStaysAfterRegretNs;
  return true;
}

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

CpuPlacement& cpu_placement() {
  thread_local CpuPlacement place;
  return place;
}

void leave_processor() {
  const int saved = errno;
  const int here = sched_getcpu();
  cpu_set_t allowed;
  if (here >= 0 && sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    cpu_set_t others = allowed;
    CPU_CLR(static_cast<size_t>(here), &others);
    if (CPU_COUNT(&others) != 0 && sched_setaffinity(0, sizeof others, &others) == 0) {
      sched_setaffinity(0, sizeof allowed, &allowed);
    }
  }
  errno = saved;
}

}  // namespace rocemu::provider
