// A seccomp filter for `rocemu run --mount-sysfs` on machines with real RDMA devices:
// the kernel would list them to programs that do not ask the preload library.
#pragma once

#include <linux/filter.h>

#include <span>

namespace rocemu::command {

/// The filter: socket(AF_NETLINK, any, NETLINK_RDMA) fails with EPROTONOSUPPORT, as it does in a
/// kernel without RDMA, and everything else is allowed.
std::span<const sock_filter> rdma_netlink_filter();

/// Installs the filter in this process, which needs the right to mount, and so in its children.
/// Throws std::runtime_error.
void refuse_rdma_netlink();

}  // namespace rocemu::command
