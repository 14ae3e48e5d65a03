// The size of a page of this machine, for tests of memory: 4 KiB, on arm64 perhaps 16 or 64.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace rocemu {

inline const auto kPageSize = static_cast<size_t>(sysconf(_SC_PAGESIZE));

}  // namespace rocemu
