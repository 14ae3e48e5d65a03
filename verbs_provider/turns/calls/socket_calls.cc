// In lockstep TCP sockets have buffers of a fixed size. Linux adapts the sizes to the speed at
// which data arrives and is read (tcp(7), tcp_moderate_rcvbuf), so that the number of bytes that a
// write(2) takes would differ between runs.
#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/system/kernel.h"
#include "verbs_provider/turns/turn.h"

namespace rocemu::turns {
namespace {

shim::Next<int(int, int, int)> next_socket("socket");

/// The default of /proc/sys/net/core/rmem_max and wmem_max.
constexpr int kBufferSize = 212'992;

bool is_tcp(int domain, int type, int protocol) {
  return (domain == AF_INET || domain == AF_INET6) &&
         (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM &&
         (protocol == 0 || protocol == IPPROTO_TCP);
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

/// Sets the buffer sizes. A socket that accept(2) returns inherits them from the listening socket.
ROCEMU_REPLACE(int, socket, (int domain, int type, int protocol)) {
  const int fd = next_socket(domain, type, protocol);
  if (fd < 0 || !is_tcp(domain, type, protocol) || !active()) return fd;
  for (const int option : {SO_RCVBUF, SO_SNDBUF})
    kernel(SYS_setsockopt, fd, SOL_SOCKET, option, &kBufferSize, sizeof kBufferSize);
  return fd;
}
