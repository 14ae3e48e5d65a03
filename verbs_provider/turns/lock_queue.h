// The queue of a lock: waiting threads get the lock in the order of their arrival.
//
// The reason is a thread that polls while it holds a lock, and returns its turn only in these
// polls. When it gets its turn again, it unlocks and locks again before any other thread has a
// turn. Without a queue the others would never get the lock. POSIX leaves the order to the
// implementation.
#pragma once

#include <cstdint>

namespace rocemu::turns {

/// Returns whether another thread of this process waits for the lock at that address.
bool somebody_waits_for(const volatile void* lock);

/// The calling thread's ticket in the queue of a lock, which exists while the thread waits for the
/// lock.
class LockTicket {
 public:
  explicit LockTicket(const volatile void* lock);
  ~LockTicket();
  LockTicket(const LockTicket&) = delete;
  LockTicket& operator=(const LockTicket&) = delete;

  /// Returns whether no thread waits that arrived earlier.
  bool is_first() const;

 private:
  const volatile void* lock_;
  uint32_t ticket_;
};

}  // namespace rocemu::turns
