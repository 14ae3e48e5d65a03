#include "verbs_provider/base/file_systems.h"

#include <cstdlib>
#include <cstring>

#include <sys/sysmacros.h>

#include "verbs_provider/base/memory_map.h"
#include "verbs_provider/base/proc_file.h"

namespace rocemu::provider {
namespace {

/// An overlay may lie over any of the others; in practice it is a container's, over a disk.
constexpr const char* kLocal[] = {"bcachefs", "btrfs",  "devtmpfs", "erofs",     "exfat",   "ext2",
                                  "ext3",     "ext4",   "f2fs",     "hugetlbfs", "iso9660", "jfs",
                                  "msdos",    "nilfs2", "ntfs3",    "overlay",   "proc",    "ramfs",
                                  "reiserfs", "rootfs", "squashfs", "sysfs",     "tmpfs",   "ubifs",
                                  "udf",      "vfat",   "xfs",      "zfs",       "zonefs"};

/// Files of mounts that the kernel keeps to itself: memfd_create(2), shared anonymous memory,
/// shmget(2), and the same of huge pages.
constexpr const char* kOfTheKernel[] = {"/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage"};

bool is_of_the_kernel(const char* path) {
  for (const char* begin : kOfTheKernel) {
    if (strncmp(path, begin, strlen(begin)) == 0) return true;
  }
  return false;
}

bool is_on_local_file_system(const MappedRange& range) {
  ProcFile mounts("/proc/self/mountinfo");
  while (char* line = mounts.next()) {
    const char* kind = kind_of_file_system(line, major(range.device), minor(range.device));
    if (kind != nullptr) return is_local(kind);
  }
  return is_of_the_kernel(range.path);
}

}  // namespace

const char* kind_of_file_system(char* line, unsigned device_major, unsigned device_minor) {
  // "mount parent major:minor root place options [field...] - kind source options"
  char* at = line;
  strtoul(at, &at, 10);
  strtoul(at, &at, 10);
  if (strtoul(at, &at, 10) != device_major || *at != ':') return nullptr;
  if (strtoul(at + 1, &at, 10) != device_minor) return nullptr;
  char* kind = strstr(at, " - ");
  if (kind == nullptr) return nullptr;
  kind += strlen(" - ");
  kind[strcspn(kind, " ")] = '\0';
  return kind;
}

bool is_local(const char* kind) {
  for (const char* local : kLocal) {
    if (strcmp(kind, local) == 0) return true;
  }
  return false;
}

bool has_pages_of_others(uint64_t begin, uint64_t end) {
  bool found = false;
  dev_t local = 0;  // no file system has device number 0
  const bool read = for_each_mapped(begin, end, [&](const MappedRange& range) {
    if (range.inode == 0 || range.device == local) return true;
    found = !is_on_local_file_system(range);
    local = range.device;
    return !found;
  });
  return found || !read;
}

}  // namespace rocemu::provider
