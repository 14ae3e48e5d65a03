#include "verbs_provider/base/place_set.h"

#include <pthread.h>

#include "verbs_provider/base/objects.h"

namespace rocemu::provider {
namespace {

pthread_key_t key;

__attribute__((constructor)) void create_key() {
  pthread_key_create(&key, [](void* set) { dispose(static_cast<PlaceSet*>(set)); });
}

}  // namespace

PlaceSet* PlaceSet::of_this_thread() {
  auto* set = static_cast<PlaceSet*>(pthread_getspecific(key));
  if (set != nullptr) return set;
  set = make<PlaceSet>();
  if (set != nullptr && pthread_setspecific(key, set) != 0) {
    dispose(set);
    return nullptr;
  }
  return set;
}

}  // namespace rocemu::provider
