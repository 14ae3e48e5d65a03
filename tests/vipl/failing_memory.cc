#include "tests/vipl/failing_memory.h"

#include <cstdlib>
#include <new>

namespace rocemu::vipl_test {
thread_local bool allocations_fail = false;
}

// All libraries of the program use its operator new, too.
void* operator new(size_t size) {
  const bool fails = rocemu::vipl_test::allocations_fail;
  void* memory = fails ? nullptr : std::malloc(size != 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
