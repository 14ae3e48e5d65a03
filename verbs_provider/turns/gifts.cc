#include "verbs_provider/turns/gifts.h"

#include "verbs_provider/turns/gift_key.h"

namespace rocemu::turns {
namespace {

using abi::ThreadSlot;

/// Iterates over the threads that wait for the key and have no gift yet.
template <class Do>
void for_each_waiting(uint64_t key, Do what) {
  const int32_t pid = own_slot()->pid.load();
  const uint32_t count = table()->high_water.load();
  for (uint32_t i = 0; i < count && i < abi::TurnTable::kSlots; ++i) {
    ThreadSlot& slot = table()->slots[i];
    if (slot.state.load() == ThreadSlot::kFree) continue;
    if (slot.pid.load() != pid && !is_among_processes(key)) continue;
    if (slot.key.load() == key && slot.given.load() == 0) what(slot);
  }
}

}  // namespace

void expect_gift(uint64_t key) {
  ThreadSlot* const slot = own_slot();
  slot->given.store(0);
  slot->queued.store(table()->next_queued.fetch_add(1));
  slot->key.store(key);
}

bool has_gift() {
  return own_slot()->given.load() != 0;
}

void end_expecting(bool pass_on) {
  ThreadSlot* const slot = own_slot();
  const uint64_t key = slot->key.exchange(0);
  if (pass_on && slot->given.load() != 0) give_gifts(key, 1);
}

uint32_t give_gifts(uint64_t key, uint32_t most) {
  acts();
  uint32_t given = 0;
  while (given < most) {
    ThreadSlot* first = nullptr;
    for_each_waiting(key, [&](ThreadSlot& slot) {
      if (first == nullptr || static_cast<int32_t>(slot.queued.load() - first->queued.load()) < 0)
        first = &slot;
    });
    if (first == nullptr) break;
    first->given.store(1);
    ++given;
  }
  return given;
}

uint32_t count_waiting(uint64_t key) {
  uint32_t count = 0;
  for_each_waiting(key, [&](ThreadSlot&) { ++count; });
  return count;
}

}  // namespace rocemu::turns
