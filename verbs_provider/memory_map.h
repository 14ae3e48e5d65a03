// What kinds of memory lie in a part of this process's address space, by /proc/self/maps
// (proc_pid_maps(5)).
#pragma once

#include <cstdint>

namespace rocemu::provider {

struct MappedRange {
  uint64_t begin, end;
  bool writable;
  bool shared;
  bool anonymous;  // neither a file's nor the kernel's own, such as a stack
  uint64_t inode;  // of the file
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

}  // namespace rocemu::provider
