// Which process this is, as fork() sees it. What a context consists of (mappings that a child does
// not get, requests that the daemon takes for the parent's) is of use only where it was opened.
#pragma once

#include <atomic>
#include <cstdint>

namespace rocemu::provider {

/// A number that no ancestor of this process had. It is given out at the first call.
uint64_t this_process();

/// Where that number stands: in memory that reads as 0 in every child of fork(), also in one that
/// the C library was not told of.
extern std::atomic<uint64_t>* process_mark;

/// Whether `process` is what this_process() returned here, and not in an ancestor.
inline bool is_this_process(uint64_t process) {
  return process_mark->load(std::memory_order_relaxed) == process;
}

}  // namespace rocemu::provider
