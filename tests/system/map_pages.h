// Memory in which a test may unmap pages.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocemu::system_test {

/// Private anonymous pages, far from where the kernel puts what asks for no address: what a test
/// unmaps of them stays a hole, although others (the sanitizers' run-time, for one) map pages
/// whenever they like. The caller unmaps them. MAP_FAILED if there is no memory.
inline uint8_t* map_pages(size_t size) {
  static std::atomic<uintptr_t> wanted{0x2000'0000'0000};
  const uintptr_t address = wanted.fetch_add(size_t{1} << 30);
  return static_cast<uint8_t*>(mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

}  // namespace rocemu::system_test
