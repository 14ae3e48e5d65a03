#include <cstdlib>

#include <pthread.h>

#include "emulator/abi/processors.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/processors.h"

namespace rocemu::turns {
namespace {

shim::Next<int(pid_t, size_t, cpu_set_t*)> next_sched_getaffinity("sched_getaffinity");
shim::Next<int(pid_t, size_t, const cpu_set_t*)> next_sched_setaffinity("sched_setaffinity");
shim::Next<int(pthread_t, size_t, cpu_set_t*)> next_pthread_getaffinity_np(
    "pthread_getaffinity_np");
shim::Next<int(pthread_t, size_t, const cpu_set_t*)> next_pthread_setaffinity_np(
    "pthread_setaffinity_np");

/// Adds "0-3,8" to `set`.
void add_list(const char* list, size_t size, cpu_set_t* set) {
  for (;;) {
    char* end;
    long processor = strtol(list, &end, 10);
    if (end == list) return;
    long last = processor;
    if (*end == '-') {
      list = end + 1;
      last = strtol(list, &end, 10);
    }
    for (; processor <= last; ++processor) CPU_SET_S(static_cast<size_t>(processor), size, set);
    if (*end != ',') return;
    list = end + 1;
  }
}

}  // namespace

void tell_of_all_processors(size_t size, cpu_set_t* set) {
  const char* const text = getenv(abi::kProcessorsVariable);
  if (text == nullptr) return;
  char* end;
  const auto kept_on = static_cast<size_t>(strtol(text, &end, 10));
  if (*end != ':' || CPU_COUNT_S(size, set) != 1 || !CPU_ISSET_S(kept_on, size, set)) return;
  add_list(end + 1, size, set);
}

void processors_are_chosen() {
  unsetenv(abi::kProcessorsVariable);
}

}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, sched_getaffinity, (pid_t thread, size_t size, cpu_set_t* set)) {
  const int result = next_sched_getaffinity(thread, size, set);
  if (result == 0) tell_of_all_processors(size, set);
  return result;
}

ROCEMU_REPLACE(int, sched_setaffinity, (pid_t thread, size_t size, const cpu_set_t* set)) {
  const int result = next_sched_setaffinity(thread, size, set);
  if (result == 0) processors_are_chosen();
  return result;
}

ROCEMU_REPLACE(int, pthread_getaffinity_np, (pthread_t thread, size_t size, cpu_set_t* set)) {
  const int result = next_pthread_getaffinity_np(thread, size, set);
  if (result == 0) tell_of_all_processors(size, set);
  return result;
}

ROCEMU_REPLACE(int, pthread_setaffinity_np, (pthread_t thread, size_t size, const cpu_set_t* set)) {
  const int result = next_pthread_setaffinity_np(thread, size, set);
  if (result == 0) processors_are_chosen();
  return result;
}
