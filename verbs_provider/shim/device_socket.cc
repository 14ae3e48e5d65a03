#include "verbs_provider/shim/device_socket.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>

#include "emulator/abi/runtime_dir.h"
#include "verbs_provider/shim/daemon_socket.h"
#include "verbs_provider/shim/event_channel.h"
#include "verbs_provider/shim/text.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

std::atomic<bool> seen_device{false};

constexpr size_t kDeviceDirLength = sizeof(abi::kDeviceDir) - 1;
constexpr size_t kDevicePrefixLength = sizeof(abi::kDevicePrefix) - 1;

bool device_of_file_name(const char* name, DeviceNumber* number) {
  if (strcmp(name, abi::kCmDevice) == 0) {
    *number = {abi::kCmMajor, abi::kCmMinor};
    return true;
  }
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

}  // namespace

bool device_of_name(const char* path, DeviceNumber* number) {
  const char* slash = strrchr(path, '/');
  if (slash == nullptr || slash < path + kDeviceDirLength) return false;
  const char* dir = slash - kDeviceDirLength;
  if (strncmp(dir, abi::kDeviceDir, kDeviceDirLength) != 0) return false;
  if (dir != path && dir[-1] != '/') return false;
  return device_of_file_name(slash + 1, number);
}

bool device_of_relative_path(int dirfd, const char* path, DeviceNumber* number,
                             char (&name)[kMaxPath]) {
  if (*path == '/') return false;
  while (path[0] == '.' && path[1] == '/') path += 2;
  char link[64], directory[kMaxPath];
  Text link_text(link, sizeof(link));
  link_text.add(dirfd == AT_FDCWD ? "/proc/thread-self/cwd" : "/proc/thread-self/fd/");
  if (dirfd != AT_FDCWD) link_text.add_number(static_cast<unsigned long>(dirfd));
  const long size = raw_syscall(SYS_readlinkat, AT_FDCWD, link, directory, sizeof(directory));
  if (size <= 0 || size == static_cast<long>(sizeof(directory))) return false;
  Text text(name, sizeof(name));
  text.add(directory, static_cast<size_t>(size));
  if (*path != '\0') {
    text.add("/");
    text.add(path);
  }
  return text.fits() && device_of_name(name, number);
}

bool device_of_fd(int fd, DeviceNumber* number) {
  PeerName peer;
  if (!peer_of_fd(fd, &peer) || !device_of_name(peer.path, number)) return false;
  seen_device.store(true, std::memory_order_relaxed);
  return true;
}

bool has_seen_device() {
  return seen_device.load(std::memory_order_relaxed);
}

int open_device(const char* path, int open_flags) {
  const long fd = connect_to_daemon(path, (open_flags & O_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0);
  if (fd >= 0) {
    // O_NONBLOCK is omitted for a verbs device: it has no effect on ioctl() and write() of a real
    // device, and would make calls to the daemon fail.
    DeviceNumber number;
    if (device_of_name(path, &number) && number.is_event_channel()) {
      if (const int error = ask_to_open_event_channel(static_cast<int>(fd)); error != 0) {
        raw_syscall(SYS_close, fd);
        return -error;
      }
      if ((open_flags & O_NONBLOCK) != 0) raw_syscall(SYS_fcntl, fd, F_SETFL, O_NONBLOCK);
    }
    seen_device.store(true, std::memory_order_relaxed);
    return static_cast<int>(fd);
  }
  switch (fd) {
    case -ENOENT:
    case -EACCES:
    case -EMFILE:
    case -ENFILE:
    case -ENOMEM:
      return static_cast<int>(fd);
    default:  // the listener no longer exists
      return -ENODEV;
  }
}

}  // namespace rocemu::shim
