// A seccomp filter for `rocemu run --mount-sysfs` on machines with real RDMA devices. Without it
// the kernel would list those devices to programs that bypass the preload library.
#pragma once

#include <linux/filter.h>

#include <span>

namespace rocemu::command {

/// Returns the filter: socket(AF_NETLINK, any, NETLINK_RDMA) fails with EPROTONOSUPPORT, as in a
/// kernel without RDMA, and everything else is allowed.
std::span<const sock_filter> rdma_netlink_filter();

/// Installs the filter in this process, which must have the privilege to mount, and thus in its
/// children. Throws std::runtime_error.
void refuse_rdma_netlink();

}  // namespace rocemu::command
