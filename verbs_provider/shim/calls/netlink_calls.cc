// socket(2) and the calls for the resulting socket: an RDMA netlink socket is a connection to the
// daemon, which replies like the kernel's RDMA subsystem. Sending needs no replacement, since a
// connected socket ignores the address of a message. The addresses that netlink libraries check are
// supplied here.
#include <algorithm>
#include <cerrno>

#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs_provider/shim/driver_list.h"
#include "verbs_provider/shim/find_runtime_dir.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/shim/netlink_socket.h"
#include "verbs_provider/shim/served_paths.h"
#include "verbs_provider/system/user_memory.h"

namespace rocemu::shim {
namespace {

Next<int(int, int, int)> next_socket("socket");
Next<int(int, const sockaddr*, socklen_t)> next_bind("bind");
Next<int(int, sockaddr*, socklen_t*)> next_getsockname("getsockname");
Next<ssize_t(int, msghdr*, int)> next_recvmsg("recvmsg");

/// Opens the socket at the daemon. Returns false if there is no daemon. Otherwise stores the result
/// of socket(2); if the daemon has just ended, the result is that of a kernel without RDMA.
__attribute__((noinline)) bool open_if_served(int type, int* result) {
  char dir[kMaxPath];
  if (!find_runtime_dir(dir, sizeof(dir))) return false;
  announce_provider();  // libibverbs starts its search for devices in this way
  *result = open_rdma_netlink(dir, type);
  if (*result >= 0) return true;
  const bool out_of_descriptors = *result == -EMFILE || *result == -ENFILE;
  errno = out_of_descriptors ? -*result : EPROTONOSUPPORT;
  *result = -1;
  return true;
}

inline bool is_ours(int fd) {
  return __builtin_expect(has_seen_rdma_netlink(), 0) && is_rdma_netlink(fd);
}

/// Stores the address like the kernel: the address is truncated to `room`, and the stored length is
/// that of the whole address. Returns 0 or EFAULT.
int give_address(uint32_t port, void* address, socklen_t room, socklen_t* length) {
  sockaddr_nl given{};
  given.nl_family = AF_NETLINK;
  given.nl_pid = port;
  constexpr socklen_t kSize = sizeof(given);
  const int error = copy_to_program(address, &given, std::min(room, kSize));
  return error != 0 ? error : copy_to_program(length, &kSize, sizeof(kSize));
}

int fail(int error) {
  errno = error;
  return -1;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

ROCEMU_REPLACE(int, socket, (int domain, int type, int protocol)) {
  int result;
  if (__builtin_expect(domain == AF_NETLINK && protocol == NETLINK_RDMA, 0) &&
      open_if_served(type, &result)) {
    return result;
  }
  return next_socket(domain, type, protocol);
}

ROCEMU_REPLACE(int, bind, (int fd, const sockaddr* address, socklen_t length)) {
  if (is_ours(fd)) return 0;  // only the daemon sends to it, whatever port it has
  return next_bind(fd, address, length);
}

ROCEMU_REPLACE(int, getsockname, (int fd, sockaddr* address, socklen_t* length)) {
  if (!is_ours(fd)) return next_getsockname(fd, address, length);
  socklen_t room;
  int error = copy_from_program(&room, length, sizeof(room));
  if (error == 0) error = give_address(static_cast<uint32_t>(getpid()), address, room, length);
  return error != 0 ? fail(error) : 0;
}

ROCEMU_REPLACE(ssize_t, recvmsg, (int fd, msghdr* message, int flags)) {
  if (!is_ours(fd)) return next_recvmsg(fd, message, flags);
  msghdr asked;
  if (copy_from_program(&asked, message, sizeof(asked)) != 0) return fail(EFAULT);
  const ssize_t size = next_recvmsg(fd, message, flags);
  if (size < 0 || asked.msg_name == nullptr) return size;
  // The sender of every received message is the kernel, whose port is 0.
  const int error = give_address(0, asked.msg_name, asked.msg_namelen, &message->msg_namelen);
  return error != 0 ? fail(error) : size;
}
