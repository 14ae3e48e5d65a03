// stat(2) and its variants: the sockets of devices, by name or by descriptor, look like the
// character devices that they emulate.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#ifndef STATX_TYPE  // musl before 1.2.5 has no statx(2)
#include <linux/stat.h>
#endif

#include "verbs_provider/shim/device_socket.h"
#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/shim/served_paths.h"

namespace rocemu::shim {
namespace {

using Stat = struct stat;
using Statx = struct statx;

Next<int(const char*, Stat*)> next_stat("stat");
Next<int(const char*, Stat*)> next_lstat("lstat");
Next<int(int, Stat*)> next_fstat("fstat");
Next<int(int, const char*, Stat*, int)> next_fstatat("fstatat");
Next<int(int, const char*, int, unsigned, Statx*)> next_statx("statx");
Next<int(int, const char*, Stat*)> next_xstat("__xstat");
Next<int(int, const char*, Stat*)> next_lxstat("__lxstat");
Next<int(int, int, Stat*)> next_fxstat("__fxstat");
Next<int(int, int, const char*, Stat*, int)> next_fxstatat("__fxstatat");

constexpr mode_t kDeviceMode = S_IFCHR | 0666;

/// Returns whether `path`, or `fd` if the path is empty, is a device. `fd` may have been opened
/// with O_PATH.
bool find_device(int fd, const char* path, DeviceNumber* number) {
  const bool by_fd = path == nullptr || *path == '\0';
  if (by_fd ? device_of_fd(fd, number) : device_of_name(path, number)) return true;
  char name[kMaxPath];
  return device_of_relative_path(fd, by_fd ? "" : path, number, name);
}

/// Changes the status of a socket into that of a device, if the socket emulates a device.
void correct(int fd, const char* path, Stat* status) {
  DeviceNumber number;
  if (!find_device(fd, path, &number)) return;
  status->st_mode = kDeviceMode;
  status->st_rdev = makedev(number.major, number.minor);
}

inline int correct_result(int result, int fd, const char* path, Stat* status) {
  if (result == 0 && S_ISSOCK(status->st_mode)) correct(fd, path, status);
  return result;
}

/// Queries the status of a path by `call`, and corrects the status of a device.
template <class Call>
inline int stat_path(int dirfd, const char* path, Stat* status, Call call) {
  const auto stat_name = [=](const char* name) {
    return correct_result(call(name), dirfd, name, status);
  };
  return query_path(dirfd, path, stat_name);
}

}  // namespace
}  // namespace rocemu::shim

using namespace rocemu::shim;

ROCEMU_REPLACE(int, stat, (const char* path, Stat* status)) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return next_stat(name, status); });
}
ROCEMU_REPLACE_ALIAS(stat64, stat);

ROCEMU_REPLACE(int, lstat, (const char* path, Stat* status)) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return next_lstat(name, status); });
}
ROCEMU_REPLACE_ALIAS(lstat64, lstat);

ROCEMU_REPLACE(int, fstat, (int fd, Stat* status)) {
  return correct_result(next_fstat(fd, status), fd, nullptr, status);
}
ROCEMU_REPLACE_ALIAS(fstat64, fstat);

ROCEMU_REPLACE(int, fstatat, (int dirfd, const char* path, Stat* status, int flags)) {
  return stat_path(dirfd, path, status,
                   [=](const char* name) { return next_fstatat(dirfd, name, status, flags); });
}
ROCEMU_REPLACE_ALIAS(fstatat64, fstatat);

ROCEMU_REPLACE(int, statx, (int dirfd, const char* path, int flags, unsigned mask, Statx* status)) {
  const auto statx_name = [=](const char* name) {
    const int result = next_statx(dirfd, name, flags, mask, status);
    if (result != 0 || !S_ISSOCK(status->stx_mode)) return result;
    Stat converted{};
    converted.st_mode = status->stx_mode;
    correct(dirfd, name, &converted);
    status->stx_mode = static_cast<decltype(status->stx_mode)>(converted.st_mode);
    status->stx_rdev_major = major(converted.st_rdev);
    status->stx_rdev_minor = minor(converted.st_rdev);
    return result;
  };
  return query_path(dirfd, path, statx_name);
}

// Programs that were built before glibc 2.33 call this function.
ROCEMU_REPLACE(int, __xstat, (int version, const char* path, Stat* status)) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return next_xstat(version, name, status); });
}
ROCEMU_REPLACE_ALIAS(__xstat64, __xstat);

ROCEMU_REPLACE(int, __lxstat, (int version, const char* path, Stat* status)) {
  return stat_path(AT_FDCWD, path, status,
                   [=](const char* name) { return next_lxstat(version, name, status); });
}
ROCEMU_REPLACE_ALIAS(__lxstat64, __lxstat);

ROCEMU_REPLACE(int, __fxstat, (int version, int fd, Stat* status)) {
  return correct_result(next_fxstat(version, fd, status), fd, nullptr, status);
}
ROCEMU_REPLACE_ALIAS(__fxstat64, __fxstat);

ROCEMU_REPLACE(int, __fxstatat,
               (int version, int dirfd, const char* path, Stat* status, int flags)) {
  return stat_path(dirfd, path, status, [=](const char* name) {
    return next_fxstatat(version, dirfd, name, status, flags);
  });
}
ROCEMU_REPLACE_ALIAS(__fxstatat64, __fxstatat);
