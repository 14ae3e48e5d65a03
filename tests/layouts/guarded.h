// A caller's struct between guards. A write before the struct is detected, and any access after it
// ends in SIGSEGV.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace rocemu::layouts {

/// Puts the struct at the end of a page, whose next page cannot be accessed.
template <class T>
class Guarded {
 public:
  Guarded() {
    void* const memory =
        mmap(nullptr, 2 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    begin_ = static_cast<unsigned char*>(memory);
    if (mprotect(begin_ + page(), page(), PROT_NONE) != 0) std::abort();
    std::fill(begin_, begin_ + at(), kGuard);
    object_ = new (begin_ + at()) T{};
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() {
    EXPECT_TRUE(std::all_of(begin_, begin_ + at(), [](unsigned char byte) {
      return byte == kGuard;
    })) << "bytes before the struct were written";
    munmap(begin_, 2 * page());
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  static constexpr unsigned char kGuard = 0xa5;

  static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  static size_t at() { return page() - sizeof(T); }

  unsigned char* begin_;
  T* object_;
};

}  // namespace rocemu::layouts
