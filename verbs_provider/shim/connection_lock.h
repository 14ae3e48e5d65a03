// One control request at a time on each connection.
#pragma once

namespace rocemu::shim {

/// Holds the lock of the connection `fd`. It belongs to a process, not to memory: a child of fork()
/// that inherits a lock held by a thread it does not have takes it over.
class ConnectionLock {
 public:
  explicit ConnectionLock(int fd);
  ~ConnectionLock();
  ConnectionLock(const ConnectionLock&) = delete;
  ConnectionLock& operator=(const ConnectionLock&) = delete;

 private:
  int index_;
};

}  // namespace rocemu::shim
