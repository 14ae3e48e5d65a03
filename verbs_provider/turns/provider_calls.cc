// What the provider and the shim report: polls, doorbells and requests.
#include "verbs_provider/hooks/provider_calls.h"

#include <sys/syscall.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/turn.h"

using rocemu::abi::ThreadSlot;
using namespace rocemu::turns;

ROCEMU_REPLACE(bool, rocemu_turns_found_nothing, (const void* place)) {
  if (!active()) return false;
  // A futex in the memory of the NIC: so reports know that it is a completion queue.
  found_nothing(Call::of(SYS_futex, place), reinterpret_cast<uint64_t>(place));
  return true;
}

ROCEMU_REPLACE(void, rocemu_turns_asks, (bool waits)) {
  if (own_slot() == nullptr || !joined()) return;
  if (!waits) return wait_until_served(own_slot());
  acts();
  own_slot()->asks.store(ThreadSlot::kWaitsForReply);
  tell_daemon(own_slot());
}

ROCEMU_REPLACE(void, rocemu_turns_acts, ()) {
  if (own_slot() != nullptr) acts();
}

ROCEMU_REPLACE(void, rocemu_turns_found, ()) {
  if (own_slot() != nullptr) progressed();
}
