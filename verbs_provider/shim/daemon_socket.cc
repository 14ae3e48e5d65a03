#include "verbs_provider/shim/daemon_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/served_paths.h"
#include "verbs_provider/shim/text.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

/// Fills in the address of the socket `path`. If the name is too long, the address uses a
/// descriptor of the directory, which is returned and must stay open until connect().
long make_address(const char* path, sockaddr_un* address) {
  address->sun_family = AF_UNIX;
  Text direct(address->sun_path, sizeof(address->sun_path));
  direct.add(path);
  if (direct.fits()) return -1;

  char dir[kMaxPath];
  const char* slash = strrchr(path, '/');
  Text dir_text(dir, sizeof(dir));
  dir_text.add(path, static_cast<size_t>(slash - path));
  if (!dir_text.fits()) return -ENAMETOOLONG;
  const long dir_fd = raw_syscall(SYS_openat, AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir_fd < 0) return dir_fd;
  Text through(address->sun_path, sizeof(address->sun_path));
  through.add("/proc/thread-self/fd/");
  through.add_number(static_cast<unsigned long>(dir_fd));
  through.add(slash);
  return dir_fd;
}

}  // namespace

long connect_to_daemon(const char* path, int type_flags) {
  sockaddr_un address;
  const long dir_fd = make_address(path, &address);
  if (dir_fd < -1) return dir_fd;
  const long fd = raw_syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | type_flags, 0);
  long error = fd < 0 ? fd : 0;
  if (fd >= 0) {
    do {
      error = raw_syscall(SYS_connect, fd, &address, sizeof(address));
    } while (error == -EINTR);
    if (error != 0) raw_syscall(SYS_close, fd);
  }
  if (dir_fd >= 0) raw_syscall(SYS_close, dir_fd);
  return error != 0 ? error : fd;
}

bool peer_of_fd(int fd, PeerName* peer) {
  sockaddr_un address;
  memset(&address, 0, sizeof(address));
  socklen_t length = sizeof(address);
  if (raw_syscall(SYS_getpeername, fd, &address, &length) != 0) return false;
  if (address.sun_family != AF_UNIX || length <= offsetof(sockaddr_un, sun_path)) return false;
  memcpy(peer->path, address.sun_path, sizeof(address.sun_path));
  peer->path[sizeof(address.sun_path)] = '\0';
  return true;
}

}  // namespace rocemu::shim
