// Copying as a NIC does, which asks nobody.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocemu::provider {

/// Not memcpy(), which in a program under a sanitizer looks at what the program may touch.
__attribute__((no_sanitize_address, no_sanitize_thread)) inline void unchecked_copy(
    std::byte* to, const std::byte* from, uint64_t length) {
#if defined(__x86_64__)
  constexpr uint64_t kLong = 256;  // below, to begin the instruction takes longer than the loop
  if (length >= kLong) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
    return;
  }
#endif
  constexpr uint64_t kWord = 8;
  for (; length >= kWord; length -= kWord, from += kWord, to += kWord) {
    __builtin_memcpy(to, from, kWord);
  }
  for (; length > 0; --length) {
    *to++ = *from++;
    asm volatile("" : : : "memory");  // or the compiler makes a memcpy() of the loop
  }
}

}  // namespace rocemu::provider
