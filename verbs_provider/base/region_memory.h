// The memory of this process that regions are registered of. It stays as it is: the daemon reaches
// it by system calls.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace rocemu::provider {

/// To be called before the daemon first looks at memory of a region. 0, or EFAULT if some of it is
/// not mapped or may not be accessed as `access` says, which a NIC finds out when it pins the
/// pages. With IBV_ACCESS_ON_DEMAND it pins none.
///
/// If some may have to be waited for (a userfaultfd's, a file's on FUSE or NFS), the daemon is
/// told.
int check_region_memory(ibv_context* context, uint64_t address, uint64_t length, int access);

/// The context is about to be closed.
void forget_region_memory(ibv_context* context);

}  // namespace rocemu::provider
