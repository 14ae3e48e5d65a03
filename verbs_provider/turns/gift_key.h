// The keys by which threads that wait for the same object recognize each other (gifts.h).
#pragma once

#include <cstdint>

namespace rocemu::turns {

/// Returns the key of an object that the threads of one process share: its address.
inline uint64_t key_in_process(const void* object) {
  return reinterpret_cast<uint64_t>(object);
}

/// Returns the key of an object that processes share, possibly at different addresses: the file
/// from which it is mapped, and the offset in it. For an object that is not in shared memory this
/// is key_in_process().
uint64_t key_among_processes(const void* object);

/// Returns whether threads of other processes can wait for the object too.
bool is_among_processes(uint64_t key);

}  // namespace rocemu::turns
