// The page size of this machine, for tests of memory: 4 KiB, or 16 or 64 KiB on some arm64
// machines.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace rocemu {

inline const auto kPageSize = static_cast<size_t>(sysconf(_SC_PAGESIZE));

}  // namespace rocemu
