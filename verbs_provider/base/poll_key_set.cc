#include "verbs_provider/base/poll_key_set.h"

#include <pthread.h>

#include "verbs_provider/base/objects.h"

namespace rocemu::provider {
namespace {

pthread_key_t key;

__attribute__((constructor)) void create_key() {
  pthread_key_create(&key, [](void* set) { dispose(static_cast<PollKeySet*>(set)); });
}

}  // namespace

PollKeySet* PollKeySet::of_this_thread() {
  auto* set = static_cast<PollKeySet*>(pthread_getspecific(key));
  if (set != nullptr) return set;
  set = make<PollKeySet>();
  if (set != nullptr && pthread_setspecific(key, set) != 0) {
    dispose(set);
    return nullptr;
  }
  return set;
}

}  // namespace rocemu::provider
