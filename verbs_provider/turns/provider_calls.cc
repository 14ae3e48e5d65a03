// Reports from the provider and the shim: doorbells, requests, and the results of polls.
#include "verbs_provider/hooks/provider_calls.h"

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/turn.h"

using namespace rocemu::turns;
using rocemu::abi::ThreadSlot;

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
