// The memory that this process has registered. It is not pinned: the daemon accesses it by system
// calls.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace rocemu::provider {

/// Checks the memory of a region before the daemon first accesses it. Returns 0, or EFAULT if some
/// of the memory is not mapped or does not permit `access`, which a NIC notices when it pins the
/// pages. With IBV_ACCESS_ON_DEMAND this is not checked, since a NIC then pins no pages.
///
/// Sets `*is_shared` to 1 if other mappings can have some of the region's pages, too, otherwise to
/// 0.
///
/// Notifies the daemon if an access to some pages may have to wait for a program or another machine
/// (userfaultfd, or files on FUSE or NFS).
int check_region_memory(ibv_context* context, uint64_t address, uint64_t length, int access,
                        uint32_t* is_shared);

/// An entry of the list of this process's registered memory, by which the provider reports changed
/// pages to the daemon (abi::MappingChanges)
struct RegisteredMemory {
  uint64_t begin = 0, end = 0;
  bool is_shared = false;  // MAP_SHARED: madvise(2) does not replace its pages
  ibv_context* context = nullptr;
  RegisteredMemory* next = nullptr;
  RegisteredMemory** link = nullptr;  // the pointer to this entry; null: not in the list
};
void enter_memory(RegisteredMemory& memory, ibv_context* context, uint64_t begin, uint64_t end,
                  bool is_shared);
void leave_memory(RegisteredMemory& memory);

/// Forgets the memory that is registered in the context. Must be called before the context is
/// closed.
void forget_region_memory(ibv_context* context);

}  // namespace rocemu::provider
