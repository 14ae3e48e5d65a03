// A lock that permits one control request at a time on each connection.
#pragma once

namespace rocemu::shim {

/// Holds the lock of the connection `fd` among the threads of this process and, once it has
/// forked, among the processes that inherited the connection.
class ConnectionLock {
 public:
  explicit ConnectionLock(int fd);
  ~ConnectionLock();
  ConnectionLock(const ConnectionLock&) = delete;
  ConnectionLock& operator=(const ConnectionLock&) = delete;

 private:
  int fd_;
  bool among_processes_;
};

}  // namespace rocemu::shim
