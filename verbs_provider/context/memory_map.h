// What kinds of memory lie in a part of this process's address space, by /proc/self/maps
// (proc_pid_maps(5)): by its PROCMAP_QUERY, which Linux 6.11 introduced and which takes a few
// microseconds however much is mapped, or by its text.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace rocemu::provider {

struct MappedRange {
  uint64_t begin, end;
  bool readable, writable;
  bool shared;       // MAP_SHARED: other mappings may have the same pages
  uint64_t inode;    // of the file; 0: there is none
  dev_t device;      // of the file system with it
  const char* path;  // or "[heap]" and the like, while it is visited; "": it has no name
};

/// Visits what is mapped between the addresses, in order and cut at them, until `visit` returns
/// false: `visit(context, range)`. False if the map could not be read to the end; then nothing
/// may be concluded from what was not visited.
bool for_each_mapped(uint64_t begin, uint64_t end, void* context,
                     bool (*visit)(void* context, const MappedRange& range));

template <class Visit>
bool for_each_mapped(uint64_t begin, uint64_t end, Visit visit) {
  return for_each_mapped(begin, end, &visit, [](void* context, const MappedRange& range) {
    return (*static_cast<Visit*>(context))(range);
  });
}

/// The same by the text only, which is what older kernels have.
bool for_each_mapped_by_text(uint64_t begin, uint64_t end, void* context,
                             bool (*visit)(void* context, const MappedRange& range));

}  // namespace rocemu::provider
