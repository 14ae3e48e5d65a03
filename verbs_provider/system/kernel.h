// System calls that go to the kernel and nowhere else: the syscall function is replaced here. The
// result is the kernel's, a negative errno value on failure; errno stays as it was.
#pragma once

#include <sys/syscall.h>

#include "verbs_provider/system/system_call.h"

namespace rocemu::turns {

inline long kernel_words(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
#else
#error "how a system call is made is not known here"
#endif
}

template <class... Args>
long kernel(long number, Args... arguments) {
  const long words[6] = {as_word(arguments)...};
  return kernel_words(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // namespace rocemu::turns
