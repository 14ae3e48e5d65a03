// By what threads that wait for the same recognise each other (gifts.h).
#pragma once

#include <cstdint>

namespace rocemu::turns {

/// Of an object that the threads of one process share: its address.
inline uint64_t key_in_process(const void* object) {
  return reinterpret_cast<uint64_t>(object);
}

/// Of an object that processes share, each at an address of its own: the file that it is mapped
/// from, and the place in it. That of the process if the object is in no shared memory.
uint64_t key_among_processes(const void* object);

/// True if threads of other processes may wait for it too.
bool is_among_processes(uint64_t key);

}  // namespace rocemu::turns
