// What kind of memory is mapped, and where the pages of a mapped file come from. Those of a file
// system in user space (FUSE) come from a program, those of NFS and its like from another machine:
// access to one that is not in memory waits for them, for ever perhaps.
#pragma once

#include <cstdint>

namespace rocemu::provider {

/// The answer if /proc cannot be read: only is_shared is set, which is always safe.
struct MappedKind {
  bool has_hole;      // some is not mapped, or may not be read
  bool is_read_only;  // some is
  bool may_block;     // some may have to be waited for; also of file systems of unknown kinds
  bool is_shared;     // some pages may be mapped elsewhere, too: MAP_SHARED
};
MappedKind kind_of_memory(uint64_t begin, uint64_t end);

/// `line` is one of /proc/self/mountinfo (proc_pid_mountinfo(5)): the kind of the file system with
/// that device number; null if it is about another. It changes the line.
const char* kind_of_file_system(char* line, unsigned device_major, unsigned device_minor);

/// Whether its pages come from this machine's memory or disks.
bool is_local(const char* kind);

}  // namespace rocemu::provider
