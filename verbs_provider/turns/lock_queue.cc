#include "verbs_provider/turns/lock_queue.h"

#include <atomic>

#include <sys/syscall.h>

#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

using abi::ThreadSlot;

/// The number of threads of this process that wait for any lock. In a child of fork(), which has
/// none of these threads, it can be too high, which only causes unnecessary searches.
std::atomic<uint32_t> waiting{0};

/// Returns whether another thread of this process waits for the lock, and `matches` is true for its
/// slot. A thread whose signal handler waits for something else does not count.
template <class Matches>
bool does_another_wait(const volatile void* lock, Matches matches) {
  const ThreadSlot* const own = own_slot();
  const int32_t pid = own->pid.load();
  const uint32_t count = table()->high_water.load();
  for (uint32_t i = 0; i < count && i < abi::TurnTable::kSlots; ++i) {
    const ThreadSlot& slot = table()->slots[i];
    if (&slot != own && slot.state.load() == ThreadSlot::kWaits && slot.pid.load() == pid &&
        slot.call.load() == SYS_futex &&
        slot.arguments[0].load() == reinterpret_cast<uint64_t>(lock) && matches(slot))
      return true;
  }
  return false;
}

}  // namespace

bool somebody_waits_for(const volatile void* lock) {
  return waiting.load() != 0 && does_another_wait(lock, [](const ThreadSlot&) { return true; });
}

LockTicket::LockTicket(const volatile void* lock)
    : lock_(lock), ticket_(table()->next_queued.fetch_add(1)) {
  waiting.fetch_add(1);
}

LockTicket::~LockTicket() {
  waiting.fetch_sub(1);
}

bool LockTicket::is_first() const {
  own_slot()->queued.store(ticket_);  // a signal handler may have waited elsewhere
  if (waiting.load() == 1) return true;
  return !does_another_wait(lock_, [this](const ThreadSlot& slot) {
    return static_cast<int32_t>(slot.queued.load() - ticket_) < 0;
  });
}

}  // namespace rocemu::turns
