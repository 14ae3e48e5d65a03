// Properties of mapped memory, and the origin of the pages of a mapped file. A program provides the
// pages of a file system in user space (FUSE), and another machine those of NFS and similar file
// systems: an access to a page that is not in memory waits for it, perhaps forever.
#pragma once

#include <cstdint>

namespace rocemu::provider {

/// The properties of a range of memory. If /proc cannot be read, only is_shared is set, which is
/// always safe.
struct MappedKind {
  bool has_hole;      // some memory is not mapped, or not readable
  bool is_read_only;  // some memory is read-only
  bool may_block;     // some pages may have to be waited for; also set for unknown file systems
  bool is_shared;     // some pages can have further mappings: MAP_SHARED
};
MappedKind kind_of_memory(uint64_t begin, uint64_t end);

/// Returns the type of the file system with that device number, according to `line`, a line of
/// /proc/self/mountinfo (proc_pid_mountinfo(5)). Returns null if the line is about another file
/// system. Modifies the line.
const char* kind_of_file_system(char* line, unsigned device_major, unsigned device_minor);

/// Returns whether the pages of file systems of this type come from this machine's memory or disks.
bool is_local(const char* kind);

}  // namespace rocemu::provider
