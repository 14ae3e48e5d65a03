// Who waits for a lock, in the order in which they came. A thread that gives its turn back only
// while it holds the lock, since it polls under it, would take it again each time before any other
// thread has a turn. POSIX leaves to the system who gets a lock that is free; here it is whoever
// has waited longest.
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
