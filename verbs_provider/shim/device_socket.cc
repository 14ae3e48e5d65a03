#include "verbs_provider/shim/device_socket.h"

#include <atomic>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/raw.h"
#include "verbs_provider/shim/served_paths.h"
#include "verbs_provider/shim/text.h"

namespace rocemu::shim {
namespace {

std::atomic<bool> seen_device{false};

constexpr size_t kDeviceDirLength = sizeof(abi::kDeviceDir) - 1;
constexpr size_t kDevicePrefixLength = sizeof(abi::kDevicePrefix) - 1;

bool device_of_file_name(const char* name, DeviceNumber* number) {
  if (strncmp(name, abi::kDevicePrefix, kDevicePrefixLength) != 0) return false;
  name += kDevicePrefixLength;
  if (*name == '\0') return false;
  unsigned index = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9' || index > 9999) return false;
    index = index * 10 + static_cast<unsigned>(*name - '0');
  }
  *number = {abi::kDeviceMajor, abi::kDeviceMinorBase + index};
  return true;
}

/// Fills the address of the socket `path`; for a name too long for it, one through a descriptor of
/// the directory, which is returned and must stay open until connect().
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
  through.add("/proc/self/fd/");
  through.add_number(static_cast<unsigned long>(dir_fd));
  through.add(slash);
  return dir_fd;
}

}  // namespace

bool device_of_name(const char* path, DeviceNumber* number) {
  const char* slash = strrchr(path, '/');
  if (slash == nullptr || slash < path + kDeviceDirLength) return false;
  const char* dir = slash - kDeviceDirLength;
  if (strncmp(dir, abi::kDeviceDir, kDeviceDirLength) != 0) return false;
  if (dir != path && dir[-1] != '/') return false;
  return device_of_file_name(slash + 1, number);
}

bool device_of_fd(int fd, DeviceNumber* number) {
  struct {
    sockaddr_un address;
    char terminator;
  } peer;
  memset(&peer, 0, sizeof(peer));
  socklen_t length = sizeof(peer.address);
  if (raw_syscall(SYS_getpeername, fd, &peer.address, &length) != 0) return false;
  if (peer.address.sun_family != AF_UNIX || length <= offsetof(sockaddr_un, sun_path)) return false;
  if (!device_of_name(peer.address.sun_path, number)) return false;
  seen_device.store(true, std::memory_order_relaxed);
  return true;
}

bool has_seen_device() {
  return seen_device.load(std::memory_order_relaxed);
}

int open_device(const char* path, int open_flags) {
  sockaddr_un address;
  const long dir_fd = make_address(path, &address);
  if (dir_fd < -1) return static_cast<int>(dir_fd);

  int type = SOCK_SEQPACKET;
  if (open_flags & O_CLOEXEC) type |= SOCK_CLOEXEC;
  // O_NONBLOCK is left out: it says nothing about ioctl() and write() of a real device, and would
  // make calls to the daemon fail.
  const long fd = raw_syscall(SYS_socket, AF_UNIX, type, 0);
  long error = fd < 0 ? fd : 0;
  if (fd >= 0) {
    do {
      error = raw_syscall(SYS_connect, fd, &address, sizeof(address));
    } while (error == -EINTR);
    if (error != 0) raw_syscall(SYS_close, fd);
  }
  if (dir_fd >= 0) raw_syscall(SYS_close, dir_fd);

  switch (error) {
    case 0:
      seen_device.store(true, std::memory_order_relaxed);
      return static_cast<int>(fd);
    case -ENOENT:
    case -EACCES:
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
      return static_cast<int>(error);
    default:  // nobody listens any more
      return -ENODEV;
  }
}

}  // namespace rocemu::shim
