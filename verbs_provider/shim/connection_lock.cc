#include "verbs_provider/shim/connection_lock.h"

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

/// A lock belongs to a process, not to memory: a child of a fork() that did not let us know, and
/// that inherits a lock held by a thread it does not have, takes it over.
class Lock {
 public:
  void take() {
    const auto me = static_cast<uint32_t>(getpid());
    for (;;) {
      uint32_t owner = 0;
      if (owner_.compare_exchange_strong(owner, me)) return;
      if (owner != me) {
        if (owner_.compare_exchange_strong(owner, me)) return;
        continue;
      }
      waiting_.fetch_add(1);
      raw_syscall(SYS_futex, &owner_, FUTEX_WAIT_PRIVATE, me, nullptr, nullptr, 0);
      waiting_.fetch_sub(1);
    }
  }

  void give_back() {
    owner_.store(0);
    if (waiting_.load() != 0) {
      raw_syscall(SYS_futex, &owner_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

 private:
  std::atomic<uint32_t> owner_{0};    // a process id, 0 if free
  std::atomic<uint32_t> waiting_{0};  // threads that may be asleep on owner_
};

// Connections that share a lock wait for each other's requests, which is slow but right.
constexpr int kLocks = 64;
Lock locks[kLocks];

Lock& lock_of(int fd) {
  return locks[fd % kLocks];
}

// ---- After a fork() -------------------------------------------------------------------------
//
// Parent and child send over the same connection, as they would to the same device. The kernel's
// record locks keep them apart, and end with a process that is killed while it holds one. They
// cost two system calls, so they begin with the first fork(), and at a moment when no request is on
// its way.

std::atomic<bool> has_forked{false};

void before_fork() {
  for (Lock& lock : locks) lock.take();
  has_forked.store(true, std::memory_order_relaxed);
}

void after_fork() {
  for (Lock& lock : locks) lock.give_back();
}

/// When the library is loaded: a thread that made its first request only now could be overtaken by
/// another's fork(), whose child would then know nothing of it and take its answers.
__attribute__((constructor)) void prepare_for_forks() {
  pthread_atfork(before_fork, after_fork, after_fork);
}

bool set_record_lock(int fd, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  for (;;) {
    switch (raw_syscall(SYS_fcntl, fd, F_SETLKW, &range)) {
      case 0:
        return true;
      case -EDEADLK:  // of two connections, held by different threads: the kernel cannot know
        sched_yield();
        continue;
      case -EINTR:
        continue;
      default:
        return false;
    }
  }
}

}  // namespace

ConnectionLock::ConnectionLock(int fd) : fd_(fd) {
  lock_of(fd).take();
  among_processes_ = has_forked.load(std::memory_order_relaxed) && set_record_lock(fd, F_WRLCK);
}

ConnectionLock::~ConnectionLock() {
  if (among_processes_) set_record_lock(fd_, F_UNLCK);
  lock_of(fd_).give_back();
}

}  // namespace rocemu::shim
