// Finds the daemon's runtime directory (emulator/abi/runtime_dir.h) for this process.
#pragma once

#include <cstddef>

namespace rocemu::shim {

/// Stores the directory's name without a trailing slash. Returns false if there is none, that is,
/// if there is no daemon. Searches again each time, which only paths of RDMA devices cause: a
/// program may start its own daemon, and a cache would be state that fork and vfork children share.
/// If the program has removed ROCEMU_DIR from its environment, with clearenv(3) for example, the
/// value from the program's start is used as long as that directory exists.
bool find_runtime_dir(char* out, size_t size);

/// Notes the value of ROCEMU_DIR. Called when the library is loaded, and by tests.
void note_runtime_dir();

}  // namespace rocemu::shim
