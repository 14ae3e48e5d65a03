#include "verbs_provider/shim/netlink_socket.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/daemon_socket.h"
#include "verbs_provider/shim/served_paths.h"
#include "verbs_provider/shim/text.h"

namespace rocemu::shim {
namespace {

std::atomic<bool> seen_netlink{false};

}  // namespace

int open_rdma_netlink(const char* dir, int type) {
  char path[kMaxPath];
  Text text(path, sizeof(path));
  text.add(dir);
  text.add("/");
  text.add(abi::kNetlinkSocket);
  if (!text.fits()) return -ENAMETOOLONG;
  const long fd = connect_to_daemon(path, type & (SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd >= 0) seen_netlink.store(true, std::memory_order_relaxed);
  return static_cast<int>(fd);
}

bool is_rdma_netlink(int fd) {
  PeerName peer;
  if (!peer_of_fd(fd, &peer)) return false;
  const char* slash = strrchr(peer.path, '/');
  return slash != nullptr && strcmp(slash + 1, abi::kNetlinkSocket) == 0;
}

bool has_seen_rdma_netlink() {
  return seen_netlink.load(std::memory_order_relaxed);
}

}  // namespace rocemu::shim
