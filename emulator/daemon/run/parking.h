// Where a thread of the daemon waits while the main thread looks at, or changes, what is otherwise
// the waiting one's own. So nothing of what a thread works with needs a lock.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace rocemu::daemon {

class Parking {
 public:
  // ---- By the main thread ----
  /// Asks the other thread to park; a sleeping one has to be woken as well.
  void ask() { asked_.store(true, std::memory_order_seq_cst); }
  void wait_until_parked();
  /// It goes on.
  void release();

  // ---- By the other thread ----
  bool is_asked() const { return asked_.load(std::memory_order_relaxed); }
  /// Until released; at once if nobody asks.
  void park();

 private:
  std::atomic<bool> asked_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool parked_ = false;
};

}  // namespace rocemu::daemon
