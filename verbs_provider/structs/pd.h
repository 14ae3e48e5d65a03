// Protection domains, parent domains and thread domains as the client sees them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <infiniband/verbs.h>

#include "verbs_provider/base/objects.h"

namespace rocemu::provider {

struct Td {
  ibv_td td;  // must be first
  std::atomic<uint32_t> users{0};
};

/// One of the daemon's protection domains, or a parent domain over one
/// (ibv_alloc_parent_domain(3)): that has its handle, so that the daemon need not know and any verb
/// can be called with it.
struct Pd {
  ibv_pd pd;  // must be first

  /// The application, until it deallocates or unimports it, and objects made with it that are still
  /// there: their `pd` points here. The daemon counts the users of a protection domain, but not
  /// those that have to end before a parent domain can, or that outlive an import.
  std::atomic<uint32_t> users{1};

  // Of a parent domain.
  Pd* under = nullptr;
  Td* thread_domain = nullptr;
  decltype(ibv_parent_domain_init_attr::alloc) alloc = nullptr;
  decltype(ibv_parent_domain_init_attr::free) free = nullptr;
  void* allocator_context = nullptr;
};

/// Every object with a `pd` holds it from its creation until its end. Null is nobody.
inline void hold(ibv_pd* pd) {
  if (pd != nullptr) ours<Pd>(pd)->users.fetch_add(1, std::memory_order_relaxed);
}
/// The last user frees it.
inline void release(ibv_pd* pd) {
  if (pd != nullptr && ours<Pd>(pd)->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    dispose(ours<Pd>(pd));
  }
}

inline bool is_parent_domain(const ibv_pd& pd) {
  return ours<const Pd>(&pd)->under != nullptr;
}

/// "If the ibv_td object is specified then any objects created under this thread domain will
/// disable internal locking" (ibv_alloc_td(3)).
inline bool is_single_threaded(const ibv_pd* pd) {
  return pd != nullptr && ours<const Pd>(pd)->thread_domain != nullptr;
}

/// What a parent domain's allocator is asked memory for: the lower half of its `resource_type`. The
/// upper half is the number of the kernel's driver, which is 0: there is none.
enum class Resource : uint64_t { kQp = 1, kCq, kSrq };

/// The part of an object that may lie in memory of a parent domain's allocator. The queues
/// themselves never do: they are shared with the daemon.
struct CustomMemory {
  Pd* from = nullptr;  // null: our own memory
};

/// Zeroed memory of `pd`'s allocator; null with errno set if it has none left. `memory` says in the
/// end where it is from, which may be calloc().
void* allocate(ibv_pd* pd, size_t size, size_t alignment, Resource resource, CustomMemory* memory);
void deallocate(void* object, Resource resource, const CustomMemory& memory);

/// make() and dispose() for a T with a member `CustomMemory custom_memory`. `pd` may be null.
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
