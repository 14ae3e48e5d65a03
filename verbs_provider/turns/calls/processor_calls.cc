#include <cstdlib>

#include <pthread.h>
#include <unistd.h>

#include "emulator/abi/run_processors.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/shown_processors.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

using abi::ThreadSlot;

shim::Next<int(pid_t, size_t, cpu_set_t*)> next_sched_getaffinity("sched_getaffinity");
shim::Next<int(pid_t, size_t, const cpu_set_t*)> next_sched_setaffinity("sched_setaffinity");
shim::Next<int(pthread_t, size_t, cpu_set_t*)> next_pthread_getaffinity_np(
    "pthread_getaffinity_np");
shim::Next<int(pthread_t, size_t, const cpu_set_t*)> next_pthread_setaffinity_np(
    "pthread_setaffinity_np");

/// The values of environment variables at the start of the program, which may clear these
/// variables.
struct {
  bool on_one = false;
  size_t one = 0;
  cpu_set_t all = {};
} kept;

/// Adds the processors of a list such as "0-3,8" to `set`.
void add_list(const char* list, cpu_set_t& set) {
  for (;;) {
    char* end;
    long processor = strtol(list, &end, 10);
    if (end == list) return;
    long last = processor;
    if (*end == '-') {
      list = end + 1;
      last = strtol(list, &end, 10);
    }
    for (; processor <= last; ++processor) CPU_SET(static_cast<size_t>(processor), &set);
    if (*end != ',') return;
    list = end + 1;
  }
}

/// Runs before other libraries query their processors.
__attribute__((constructor(101))) void read_environment() {
  const char* const text = getenv(abi::kProcessorsVariable);
  if (text == nullptr) return;
  char* end;
  kept.one = static_cast<size_t>(strtol(text, &end, 10));
  if (*end != ':') return;
  add_list(end + 1, kept.all);
  kept.on_one = true;
}

template <class Predicate>
ThreadSlot* find_slot(Predicate is_it) {
  if (!joined()) return nullptr;
  const uint32_t count = table()->high_water.load();
  for (uint32_t i = 0; i < count && i < abi::TurnTable::kSlots; ++i) {
    ThreadSlot& slot = table()->slots[i];
    const uint32_t state = slot.state.load();
    if (state != ThreadSlot::kFree && state != ThreadSlot::kGone && is_it(slot)) return &slot;
  }
  return nullptr;
}

/// Returns the slot of a thread of any process of the run, or null if the process takes no turns.
ThreadSlot* slot_of(pid_t thread) {
  if (thread == 0) return own_slot();
  return find_slot([&](const ThreadSlot& slot) { return slot.tid.load() == thread; });
}

ThreadSlot* slot_of(pthread_t thread) {
  const pid_t process = getpid();
  return find_slot([&](const ThreadSlot& slot) {
    return slot.pid.load() == process && slot.handle.load() == static_cast<uint64_t>(thread);
  });
}

bool is_the_one(size_t size, const cpu_set_t* set) {
  return CPU_COUNT_S(size, set) == 1 && CPU_ISSET_S(kept.one, size, set);
}

void tell_of_all(const ThreadSlot* slot, size_t size, cpu_set_t* set) {
  if (!is_the_one(size, set) || (slot != nullptr && slot->chose_processor.load() != 0)) return;
  for (size_t processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &kept.all)) CPU_SET_S(processor, size, set);
}

/// Notes whether the thread has chosen the run's only processor. `now` is the kernel's answer after
/// the choice, which excludes the processors that may not be used.
void note_choice(ThreadSlot* slot, const cpu_set_t& now) {
  if (slot != nullptr) slot->chose_processor.store(is_the_one(sizeof now, &now) ? 1 : 0);
}

}  // namespace

void tell_of_all_processors(pid_t thread, size_t size, cpu_set_t* set) {
  if (kept.on_one) tell_of_all(slot_of(thread), size, set);
}

void processors_are_chosen(pid_t thread) {
  cpu_set_t now;
  if (kept.on_one && next_sched_getaffinity(thread, sizeof now, &now) == 0)
    note_choice(slot_of(thread), now);
}

}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, sched_getaffinity, (pid_t thread, size_t size, cpu_set_t* set)) {
  const int result = next_sched_getaffinity(thread, size, set);
  if (result == 0) tell_of_all_processors(thread, size, set);
  return result;
}

ROCEMU_REPLACE(int, sched_setaffinity, (pid_t thread, size_t size, const cpu_set_t* set)) {
  const int result = next_sched_setaffinity(thread, size, set);
  if (result == 0) processors_are_chosen(thread);
  return result;
}

ROCEMU_REPLACE(int, pthread_getaffinity_np, (pthread_t thread, size_t size, cpu_set_t* set)) {
  const int result = next_pthread_getaffinity_np(thread, size, set);
  if (result == 0 && kept.on_one) tell_of_all(slot_of(thread), size, set);
  return result;
}

ROCEMU_REPLACE(int, pthread_setaffinity_np, (pthread_t thread, size_t size, const cpu_set_t* set)) {
  const int result = next_pthread_setaffinity_np(thread, size, set);
  cpu_set_t now;
  if (result == 0 && kept.on_one && next_pthread_getaffinity_np(thread, sizeof now, &now) == 0)
    note_choice(slot_of(thread), now);
  return result;
}
