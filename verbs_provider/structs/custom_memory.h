// Memory of QPs, CQs and SRQs, which a parent domain can provide (ibv_alloc_parent_domain(3)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include <infiniband/verbs.h>

namespace rocemu::provider {

struct Pd;

/// The lower half of the `resource_type` that a parent domain's allocator gets. The upper half is
/// the number of the kernel's driver, which is 0 because there is none.
enum class Resource : uint64_t { kQp = 1, kCq, kSrq };

/// The part of an object that can be in memory of a parent domain's allocator. The queues
/// themselves never are, since they are shared with the daemon.
struct CustomMemory {
  Pd* from = nullptr;  // null: our own memory
};

/// Returns zeroed memory from `pd`'s allocator, or from calloc() if `pd` has none; null with errno
/// set if memory is exhausted. Stores the origin of the memory in `memory`.
void* allocate(ibv_pd* pd, size_t size, size_t alignment, Resource resource, CustomMemory* memory);
void deallocate(void* object, Resource resource, const CustomMemory& memory);

/// Creates and destroys a T with a member `CustomMemory custom_memory`, like make() and dispose().
/// `pd` may be null.
template <class T>
T* make_in(ibv_pd* pd, Resource resource) {
  CustomMemory from;
  void* memory = allocate(pd, sizeof(T), alignof(T), resource, &from);
  if (memory == nullptr) return nullptr;
  T* object = new (memory) T();
  object->custom_memory = from;
  return object;
}

template <class T>
void dispose_in(T* object, Resource resource) {
  const CustomMemory from = object->custom_memory;
  object->~T();
  deallocate(object, resource, from);
}

}  // namespace rocemu::provider
