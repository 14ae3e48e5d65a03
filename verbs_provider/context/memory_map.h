// The mappings in a part of this process's address space, from /proc/thread-self/maps
// (proc_pid_maps(5)). They are read by PROCMAP_QUERY, which exists since Linux 6.11 and takes a few
// microseconds independently of the number of mappings, or from the file's text.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace rocemu::provider {

struct MappedRange {
  uint64_t begin, end;
  bool readable, writable;
  bool shared;       // MAP_SHARED: other mappings can have the same pages
  uint64_t inode;    // of the file; 0: there is none
  dev_t device;      // of the file system of the file
  const char* path;  // or "[heap]" and the like, while it is visited; "": it has no name
};

/// Calls `visit(context, range)` for the mappings between the addresses, in order and truncated at
/// them, until it returns false. Returns false if the map could not be read to the end; then
/// nothing is known about the ranges that were not visited.
bool for_each_mapped(uint64_t begin, uint64_t end, void* context,
                     bool (*visit)(void* context, const MappedRange& range));

template <class Visit>
bool for_each_mapped(uint64_t begin, uint64_t end, Visit visit) {
  return for_each_mapped(begin, end, &visit, [](void* context, const MappedRange& range) {
    return (*static_cast<Visit*>(context))(range);
  });
}

/// Does the same as for_each_mapped() with the file's text only, as on older kernels
bool for_each_mapped_by_text(uint64_t begin, uint64_t end, void* context,
                             bool (*visit)(void* context, const MappedRange& range));

}  // namespace rocemu::provider
