// Finds the daemon's runtime directory (emulator/abi/runtime_dir.h) for this process.
#pragma once

#include <cstddef>

namespace rocemu::shim {

/// Stores the directory's name without a trailing slash. Returns false if there is none, that is,
/// if there is no daemon. Searches again each time, which only paths of RDMA devices cause: a
/// program may start its own daemon, and a cache would be state that fork and vfork children share.
bool find_runtime_dir(char* out, size_t size);

}  // namespace rocemu::shim
