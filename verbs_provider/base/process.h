// The identity of this process, which changes in a child of fork(). The parts of a context
// (mappings that a child does not get, requests that the daemon attributes to the parent) can only
// be used in the process that opened it.
#pragma once

#include <atomic>
#include <cstdint>

namespace rocemu::provider {

/// Returns a number that no ancestor of this process had. It is assigned at the first call.
uint64_t this_process();

/// The location of the process's number: memory that reads as 0 in every child of fork(), even if
/// the C library was not notified of the fork.
extern std::atomic<uint64_t>* process_mark;

/// Returns whether `process` was returned by this_process() in this process, and not in an
/// ancestor.
inline bool is_this_process(uint64_t process) {
  return process_mark->load(std::memory_order_relaxed) == process;
}

}  // namespace rocemu::provider
