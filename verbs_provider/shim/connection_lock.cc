#include "verbs_provider/shim/connection_lock.h"

#include <atomic>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/raw.h"

namespace rocemu::shim {
namespace {

struct Lock {
  std::atomic<uint32_t> owner{0};    // a process id, 0 if free
  std::atomic<uint32_t> waiting{0};  // threads that may be asleep on owner
};

// Connections that share a lock wait for each other's requests, which is slow but right.
constexpr int kLocks = 64;
Lock locks[kLocks];

}  // namespace

ConnectionLock::ConnectionLock(int fd) : index_(fd % kLocks) {
  Lock& lock = locks[index_];
  const auto me = static_cast<uint32_t>(getpid());
  for (;;) {
    uint32_t owner = 0;
    if (lock.owner.compare_exchange_strong(owner, me)) return;
    if (owner != me) {
      if (lock.owner.compare_exchange_strong(owner, me)) return;
      continue;
    }
    lock.waiting.fetch_add(1);
    raw_syscall(SYS_futex, &lock.owner, FUTEX_WAIT_PRIVATE, me, nullptr, nullptr, 0);
    lock.waiting.fetch_sub(1);
  }
}

ConnectionLock::~ConnectionLock() {
  Lock& lock = locks[index_];
  lock.owner.store(0);
  if (lock.waiting.load() != 0) {
    raw_syscall(SYS_futex, &lock.owner, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

}  // namespace rocemu::shim
