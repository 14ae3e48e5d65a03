// Which processor a thread polls on. Where programs and the daemon share processors, messages flow
// best when the daemon has one for itself and the polling threads take turns on another: each
// change from one to the next then moves many messages, and none keeps the daemon from its work.
// But a thread that does something else between its polls keeps its neighbours waiting, as
// ib_write_lat does, which watches its memory for the peer's data without a call. Such a thread
// stays where it is, or goes back if that shows only then.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rocemu::provider {

/// Of a thread.
class CpuPlacement {
 public:
  /// A wait for a completion begins, on the daemon's processor or on another. Whether the thread is
  /// better off where it is not.
  bool begins(bool beside_daemon, int64_t now_ns);
  /// True if the thread has done nothing but poll and post since its last wait, so blocking cannot
  /// delay other work. Does not count as a wait for begins().
  bool may_sleep(int64_t now_ns);
  /// It ends.
  void ends(int64_t now_ns) { ended_ns_ = now_ns; }
  /// What a thread that does nothing but communicate does between its waits: it gets completions
  /// and posts work requests.
  void finds(uint64_t completions) { found_ += std::min(completions, kMaxFound); }
  void posts() { ++posted_; }
  /// It was kept from going on for so long: it woke the daemon, which may have taken its place.
  void was_kept(int64_t ns) { ended_ns_ += ns; }

 private:
  static constexpr uint64_t kMaxFound = 16;  // as many as it may take at once

  bool is_late(int64_t now_ns) const;
  bool leaves_daemon(bool is_late, bool is_new, int64_t now_ns);
  bool goes_back(bool is_late, int64_t now_ns);

  int64_t ended_ns_ = 0;
  int64_t stays_until_ns_ = 0;       // where it is, whatever happens
  uint64_t found_ = 0, posted_ = 0;  // since a wait last began
  uint32_t waits_ = 0;               // beside the daemon, in a row, with nothing else done between
  uint32_t delays_ = 0;  // waits elsewhere that came after other things, less the others
  bool left_ = false;
};

/// What the places' times are of: CLOCK_MONOTONIC.
int64_t now_ns();

/// The calling thread's.
CpuPlacement& cpu_placement();

/// Goes on on another processor, if the calling thread may use one. What it may use stays the same.
void leave_processor();

}  // namespace rocemu::provider
