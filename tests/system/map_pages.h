// Memory in which a test may unmap pages.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocemu::system_test {

/// Maps private anonymous pages, far from the addresses that the kernel chooses. So pages that a
/// test unmaps stay unmapped, although other code (such as the run-time of a sanitizer) may map
/// pages at any time. The caller unmaps the pages. Returns MAP_FAILED if there is no memory.
inline uint8_t* map_pages(size_t size) {
  static std::atomic<uintptr_t> wanted{0x2000'0000'0000};
  const uintptr_t address = wanted.fetch_add(size_t{1} << 30);
  return static_cast<uint8_t*>(mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

}  // namespace rocemu::system_test
