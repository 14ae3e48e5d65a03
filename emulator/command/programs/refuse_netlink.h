// A seccomp filter for `rocemu run --mount-sysfs` on machines with real RDMA devices. Without it
// the kernel would list those devices to programs that bypass the preload library.
#pragma once

#include <linux/filter.h>

#include <span>

namespace rocemu::command {

/// Returns the filter. It makes socket(AF_NETLINK, any, NETLINK_RDMA) fail with EPROTONOSUPPORT, as
/// in a kernel without RDMA, and allows everything else.
std::span<const sock_filter> rdma_netlink_filter();

/// Installs the filter in this process, and thus in its children. The process must have the
/// privilege to mount. Throws std::runtime_error.
void refuse_rdma_netlink();

}  // namespace rocemu::command
