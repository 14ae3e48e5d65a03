// The lock of the sanitizer's own data. A ThreadSanitizer in the program does not see the lock, nor
// accesses made while it is held: otherwise each verb would order the program's threads.
#pragma once

#include "verbs_provider/base/lock.h"
#include "verbs_provider/sanitizer/compilers/nic_threads.h"

namespace rocemu::sanitizer {

class OwnLock {
 public:
  void lock() {
    if (!has_thread_sanitizer()) return mutex_.lock();
    begin_unseen_by_thread_sanitizer();
    begin_unseen_locks();
    mutex_.lock();
    end_unseen_locks();
  }
  bool try_lock() {
    begin_unseen_locks();
    const bool is_locked = mutex_.try_lock();
    end_unseen_locks();
    if (is_locked) begin_unseen_by_thread_sanitizer();
    return is_locked;
  }
  void unlock() {
    if (!has_thread_sanitizer()) return mutex_.unlock();
    begin_unseen_locks();
    mutex_.unlock();
    end_unseen_locks();
    end_unseen_by_thread_sanitizer();
  }

 private:
  provider::Mutex mutex_;
};

}  // namespace rocemu::sanitizer
