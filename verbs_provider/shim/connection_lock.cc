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

/// A lock that belongs to a process, not to memory. If a child of a fork() that did not notify us
/// inherits a lock that a thread of the parent holds, the child takes the lock over.
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
  std::atomic<uint32_t> waiting_{0};  // threads that may be sleeping on owner_
};

// Connections that share a lock wait for each other's requests, which is slow but correct.
constexpr int kLocks = 64;
Lock locks[kLocks];

Lock& lock_of(int fd) {
  return locks[fd % kLocks];
}

// ---- After a fork() -------------------------------------------------------------------------
//
// Parent and child send over the same connection, as they would to the same device. The kernel's
// record locks serialize their requests, and are released if a process is killed while it
// holds one. They cost two system calls, so they are used only after the first fork(), which starts
// at a moment without a request in progress.

std::atomic<bool> has_forked{false};

void before_fork() {
  for (Lock& lock : locks) lock.take();
  has_forked.store(true, std::memory_order_relaxed);
}

void after_fork() {
  for (Lock& lock : locks) lock.give_back();
}

/// Runs when the library is loaded. If it ran only at a thread's first request, another thread
/// could fork at that moment. Its child would then not use the record locks, and would read the
/// replies to the thread.
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
