// Copies memory without the checks of sanitizers, as a NIC does
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocemu::provider {

/// Copies the bytes. If the program has a sanitizer, memcpy() would check whether the program may
/// access them; this function does not.
__attribute__((no_sanitize_address, no_sanitize_thread)) inline void unchecked_copy(
    std::byte* to, const std::byte* from, uint64_t length) {
#if defined(__x86_64__)
  constexpr uint64_t kLong = 256;  // for less, starting the instruction takes longer than the loop
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
    asm volatile("" : : : "memory");  // prevents the compiler from turning the loop into memcpy()
  }
}

}  // namespace rocemu::provider
