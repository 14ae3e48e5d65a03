// First come, first served: the threads that wait for a lock get it in the order in which they
// came.
//
// Why: a thread that polls with a lock held gives its turn back only there. When it has its turn
// again it unlocks, and locks again, before any other thread has a turn. Without a queue the others
// would never get the lock. POSIX leaves the order to the implementation.
#pragma once

#include <cstdint>

namespace rocemu::turns {

/// Whether another thread of this process waits for the lock at that address.
bool somebody_waits_for(const volatile void* lock);

/// A place in the queue of a lock, while the calling thread waits for it.
class LockPlace {
 public:
  explicit LockPlace(const volatile void* lock);
  ~LockPlace();
  LockPlace(const LockPlace&) = delete;
  LockPlace& operator=(const LockPlace&) = delete;

  /// Whether nobody waits who came before.
  bool is_first() const;

 private:
  const volatile void* lock_;
  uint32_t place_;
};

}  // namespace rocemu::turns
