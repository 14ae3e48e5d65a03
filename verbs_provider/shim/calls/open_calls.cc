// open(2) and its variants: files of sysfs are opened in the daemon's tree, and devices are
// sockets.
#include <cerrno>
#include <cstdarg>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "verbs_provider/shim/device_socket.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/shim/served_paths.h"
#include "verbs_provider/system/raw.h"

namespace rocemu::shim {
namespace {

Next<int(const char*, int, ...)> next_open("open");
Next<int(int, const char*, int, ...)> next_openat("openat");
Next<int(const char*, int)> next_open_2("__open_2");
Next<int(int, const char*, int)> next_openat_2("__openat_2");

bool is_socket(const char* path) {
  struct stat status;
  return raw_syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0 && S_ISSOCK(status.st_mode);
}

/// Returns whether open with these flags would open a device's file, and not only find it or fail.
bool opens_file(int flags) {
  return (flags & (O_PATH | O_DIRECTORY)) == 0 &&
         (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
}

int connect_to_device(const char* name, int flags) {
  const int fd = open_device(name, flags);
  if (fd >= 0) return fd;
  errno = -fd;
  return -1;
}

/// Opens a path that the kernel refused with ENXIO, the error for sockets, if it is a device in the
/// directory of devices.
__attribute__((noinline)) int open_from_directory(int dirfd, const char* path, int flags) {
  DeviceNumber number;
  char name[kMaxPath];
  if (device_of_relative_path(dirfd, path, &number, name) && is_socket(name)) {
    return connect_to_device(name, flags);
  }
  errno = ENXIO;
  return -1;
}

/// Opens the path or, if it names a device, connects to the device's socket. `open` opens a path
/// with the caller's flags and mode.
template <class Open>
int open_path(int dirfd, const char* path, int flags, Open open) {
  const int saved = errno;
  const int fd = use_path(dirfd, path, [=](const char* name) {
    DeviceNumber number;
    if (name == path || !opens_file(flags) || !device_of_name(name, &number) || !is_socket(name)) {
      return open(name);
    }
    return connect_to_device(name, flags);
  });
  if (fd >= 0 || errno != ENXIO || !opens_file(flags)) return fd;
  errno = saved;
  return open_from_directory(dirfd, path, flags);
}

/// Returns whether the call has a mode argument: it does only if the flags require one (O_TMPFILE
/// includes O_DIRECTORY).
bool has_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

ROCEMU_REPLACE(int, open, (const char* path, int flags, ...)) {
  mode_t mode = 0;
  if (has_mode(flags)) {
    va_list args;
    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
  }
  return open_path(AT_FDCWD, path, flags,
                   [=](const char* name) { return next_open(name, flags, mode); });
}
ROCEMU_REPLACE_ALIAS(open64, open);

ROCEMU_REPLACE(int, openat, (int dirfd, const char* path, int flags, ...)) {
  mode_t mode = 0;
  if (has_mode(flags)) {
    va_list args;
    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
  }
  return open_path(dirfd, path, flags,
                   [=](const char* name) { return next_openat(dirfd, name, flags, mode); });
}
ROCEMU_REPLACE_ALIAS(openat64, openat);

// _FORTIFY_SOURCE replaces calls without a mode by this function.
ROCEMU_REPLACE(int, __open_2, (const char* path, int flags)) {
  return open_path(AT_FDCWD, path, flags,
                   [=](const char* name) { return next_open_2(name, flags); });
}
ROCEMU_REPLACE_ALIAS(__open64_2, __open_2);

ROCEMU_REPLACE(int, __openat_2, (int dirfd, const char* path, int flags)) {
  return open_path(dirfd, path, flags,
                   [=](const char* name) { return next_openat_2(dirfd, name, flags); });
}
ROCEMU_REPLACE_ALIAS(__openat64_2, __openat_2);
