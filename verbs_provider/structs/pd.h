// Protection domains, parent domains and thread domains in the client
#pragma once

#include <atomic>
#include <cstdint>

#include <infiniband/verbs.h>

#include "verbs_provider/base/objects.h"

namespace rocemu::provider {

struct Td {
  ibv_td td;  // must be first
  std::atomic<uint32_t> users{0};
};

/// One of the daemon's protection domains, or a parent domain over one
/// (ibv_alloc_parent_domain(3)). A parent domain has the handle of its protection domain. So any
/// verb can be called with it, and the daemon does not have parent domains.
struct Pd {
  ibv_pd pd;  // must be first

  /// The number of users: the application, until it deallocates or unimports the PD, and the
  /// existing objects whose `pd` points here. The daemon counts the users of a protection domain,
  /// but not those that must be destroyed before a parent domain, or that outlive an import.
  std::atomic<uint32_t> users{1};

  // The following members are set only for a parent domain. `under` is its protection domain.
  Pd* under = nullptr;
  Td* thread_domain = nullptr;
  decltype(ibv_parent_domain_init_attr::alloc) alloc = nullptr;
  decltype(ibv_parent_domain_init_attr::free) free = nullptr;
  void* allocator_context = nullptr;
};

/// Holds a PD. Every object with a `pd` holds it from its creation until its destruction. A null
/// pointer is ignored.
inline void hold(ibv_pd* pd) {
  if (pd != nullptr) ours<Pd>(pd)->users.fetch_add(1, std::memory_order_relaxed);
}
/// Releases a PD. The last user frees it.
inline void release(ibv_pd* pd) {
  if (pd != nullptr && ours<Pd>(pd)->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    dispose(ours<Pd>(pd));
  }
}

inline bool is_parent_domain(const ibv_pd& pd) {
  return ours<const Pd>(&pd)->under != nullptr;
}

/// Returns whether the PD has a thread domain: "If the ibv_td object is specified then any objects
/// created under this thread domain will disable internal locking" (ibv_alloc_td(3)).
inline bool is_single_threaded(const ibv_pd* pd) {
  return pd != nullptr && ours<const Pd>(pd)->thread_domain != nullptr;
}

}  // namespace rocemu::provider
