#include "emulator/schedule/hang_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rocemu::schedule {
namespace {

using namespace std::chrono_literals;

/// The interval of reports, in real time, doubles from kFirstReportInterval to kReportInterval. A
/// thread that is just going to sleep hides a hang from the first report.
constexpr Duration kFirstReportInterval = 1ms, kReportInterval = 128ms;
/// The time limit, in real time, for `rocemu` to decide whether the run hangs. Detecting that
/// programs wait, or poll for nothing, takes less time (emulator/command/hangs/hang.cc).
constexpr Duration kUntilVerdict = 15s;
/// After kManyJumps advances of the clock, plus kManyJumpsOfEach for each QP and CM id, without
/// progress of any QP, all limited retries have ended: 7 of each kind for a QP (IBTA vol 1,
/// 9.7.5.2.8 and 9.7.6.1.3), and 15 for the messages of a connection.
constexpr uint64_t kManyJumps = 1000, kManyJumpsOfEach = 64;
/// The number of advances of the clock that count as one if frames cross a simulated network, where
/// the clock advances for each packet of a retransmission.
constexpr uint64_t kJumpsOfFrames = 1000;

}  // namespace

void HangWatch::see(uint32_t activity) {
  if (std::exchange(activity_, activity) == activity) return;
  is_stuck_ = repeats_ = false;
  jumps_ = looked_at_jump_ = jumps_of_frames_ = 0;
}

void HangWatch::jumped(bool moves_frames) {
  if (moves_frames && ++jumps_of_frames_ % kJumpsOfFrames != 0) return;
  ++jumps_;
}

bool HangWatch::wants_progress() const {
  return jumps_ - looked_at_jump_ >= kManyJumps;
}

bool HangWatch::sees_progress(std::vector<uint32_t> progress, bool may_repeat) {
  const uint64_t many = kManyJumps + kManyJumpsOfEach * progress.size();
  if (looked_at_jump_ == 0 || progress != progress_) {
    progress_ = std::move(progress);
    looked_at_jump_ = jumps_;
    is_stuck_ = false;
  } else if (jumps_ - looked_at_jump_ >= many) {
    return may_repeat;
  }
  return is_stuck_;
}

bool HangWatch::report(Instant real_now) {
  if (is_stuck_ && real_now - reported_ < interval_) return false;
  interval_ = is_stuck_ ? std::min(2 * interval_, kReportInterval) : kFirstReportInterval;
  if (!is_stuck_) stuck_since_ = real_now;
  is_stuck_ = true;
  reported_ = real_now;
  return true;
}

bool HangWatch::awaits_verdict(Instant real_now) {
  if (!repeats_) return false;
  if (real_now - stuck_since_ < kUntilVerdict) return true;
  is_stuck_ = repeats_ = false;
  looked_at_jump_ = jumps_;
  return false;
}

}  // namespace rocemu::schedule
