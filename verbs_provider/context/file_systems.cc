#include "verbs_provider/context/file_systems.h"

#include <cstdlib>
#include <cstring>

#include <sys/sysmacros.h>

#include "verbs_provider/context/memory_map.h"
#include "verbs_provider/system/proc_file.h"

namespace rocemu::provider {
namespace {

/// The types of local file systems. An overlay counts as local, although any file system can be
/// below it: in practice it belongs to a container and is over a disk.
constexpr const char* kLocal[] = {"bcachefs", "btrfs",  "devtmpfs", "erofs",     "exfat",   "ext2",
                                  "ext3",     "ext4",   "f2fs",     "hugetlbfs", "iso9660", "jfs",
                                  "msdos",    "nilfs2", "ntfs3",    "overlay",   "proc",    "ramfs",
                                  "reiserfs", "rootfs", "squashfs", "sysfs",     "tmpfs",   "ubifs",
                                  "udf",      "vfat",   "xfs",      "zfs",       "zonefs"};

/// Files of internal mounts of the kernel: memfd_create(2), shared anonymous memory, shmget(2), and
/// the same with huge pages.
constexpr const char* kOfTheKernel[] = {"/memfd:",        "/dev/zero",  "/SYSV",
                                        "/anon_hugepage", "/secretmem", "anon_inode:"};

bool is_of_the_kernel(const char* path) {
  for (const char* begin : kOfTheKernel) {
    if (strncmp(path, begin, strlen(begin)) == 0) return true;
  }
  return false;
}

/// A list of file systems whose types are looked up together
struct FileSystems {
  static constexpr size_t kMax = 16;
  struct One {
    dev_t device;
    bool is_local;  // as far as is known
  };

  bool has(dev_t device) const {
    for (size_t i = 0; i < count; ++i) {
      if (all[i].device == device) return true;
    }
    return false;
  }
  bool are_local() const {
    for (size_t i = 0; i < count; ++i) {
      if (!all[i].is_local) return false;
    }
    return true;
  }

  One all[kMax];
  size_t count;
};

/// Looks up the types of the wanted file systems in the list of mounts. A file system that is not
/// in this list keeps its value: it is internal to the kernel, outside of this chroot(2), or
/// unmounted. This is a separate function because a ProcFile takes a quarter of the smallest
/// thread's stack, and its caller needs other ProcFiles.
[[gnu::noinline]] void look_up(FileSystems& wanted) {
  ProcFile mounts("/proc/thread-self/mountinfo");
  while (char* line = mounts.next()) {
    for (size_t i = 0; i < wanted.count; ++i) {
      FileSystems::One& one = wanted.all[i];
      const char* kind = kind_of_file_system(line, major(one.device), minor(one.device));
      if (kind == nullptr) continue;
      one.is_local = is_local(kind);
      break;
    }
  }
}

}  // namespace

const char* kind_of_file_system(char* line, unsigned device_major, unsigned device_minor) {
  // A line is "mount parent major:minor root place options [field...] - kind source options".
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

MappedKind kind_of_memory(uint64_t begin, uint64_t end) {
  FileSystems found;
  found.count = 0;
  bool too_many = false;
  MappedKind kind{};
  uint64_t seen = begin;
  const bool is_known = for_each_mapped(begin, end, [&](const MappedRange& range) {
    kind.has_hole |= range.begin != seen || !range.readable;
    kind.is_read_only |= !range.writable;
    kind.is_shared |= range.shared;
    seen = range.end;
    if (range.inode == 0 || found.has(range.device)) return true;
    too_many |= found.count == FileSystems::kMax;
    if (too_many) return true;
    // FUSE, NFS and all other file systems without a disk have device numbers with major 0.
    const bool has_disk = major(range.device) != 0;
    found.all[found.count++] = {range.device, has_disk || is_of_the_kernel(range.path)};
    return true;
  });
  if (!is_known) {
    kind = {};
    kind.is_shared = true;
    return kind;
  }
  kind.has_hole |= seen != end;
  if (found.count != 0) look_up(found);
  kind.may_block = too_many || !found.are_local();
  return kind;
}

}  // namespace rocemu::provider
