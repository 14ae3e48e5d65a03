#include "verbs_provider/structs/custom_memory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/structs/pd.h"

namespace rocemu::provider {

void* allocate(ibv_pd* base, size_t size, size_t alignment, Resource resource,
               CustomMemory* memory) {
  *memory = {};
  Pd* pd = base == nullptr ? nullptr : ours<Pd>(base);
  if (pd != nullptr && pd->alloc != nullptr) {
    void* object =
        pd->alloc(base, pd->allocator_context, size, alignment, static_cast<uint64_t>(resource));
    if (object == nullptr) return fail(ENOMEM);
    if (object != IBV_ALLOCATOR_USE_DEFAULT) {
      memory->from = pd;
      // ibv_alloc_parent_domain(3): "The callback makes sure the allocated buffer is initialized
      // with zeros". Ensuring this here costs little.
      return memset(object, 0, size);
    }
  }
  void* object = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (object == nullptr) return fail(ENOMEM);
  return memset(object, 0, size);
}

void deallocate(void* object, Resource resource, const CustomMemory& memory) {
  Pd* pd = memory.from;
  if (pd == nullptr) {
    free(object);
  } else {
    pd->free(&pd->pd, pd->allocator_context, object, static_cast<uint64_t>(resource));
  }
}

}  // namespace rocemu::provider
