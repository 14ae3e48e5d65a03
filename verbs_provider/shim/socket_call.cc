// socket(2): libibverbs asks the kernel for devices over netlink and looks at sysfs, which we
// serve, only if that is refused.
#include <cerrno>

#include <linux/netlink.h>
#include <sys/socket.h>

#include "verbs_provider/shim/driver_list.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/shim/runtime_dir.h"
#include "verbs_provider/shim/served_paths.h"

namespace rocemu::shim {
namespace {

Next<int(int, int, int)> next_socket("socket");

__attribute__((noinline)) bool refuses_rdma_netlink() {
  char dir[kMaxPath];
  if (!find_runtime_dir(dir, sizeof(dir))) return false;
  announce_provider();
  return true;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

ROCEMU_REPLACE(int, socket, (int domain, int type, int protocol)) {
  if (__builtin_expect(domain == AF_NETLINK && protocol == NETLINK_RDMA, 0) &&
      refuses_rdma_netlink()) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return next_socket(domain, type, protocol);
}
