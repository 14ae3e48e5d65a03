// System calls that bypass the C library's wrappers, because a wrapper may be replaced by the shim
// or a sanitizer, or be a cancellation point.
#pragma once

#include <cerrno>
#include <type_traits>

#include <sys/syscall.h>
#include <unistd.h>

namespace rocemu {

/// Returns an argument as a whole register, as the kernel reads it. syscall(2) is variadic, so it
/// would pass an `int` as such, and for the seventh argument, which is on the stack, clang writes
/// only half of the register.
template <class T>
long as_word(T value) {
  if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else {
    return static_cast<long>(value);
  }
}

/// Makes the call by an inline instruction, without libc. Returns the kernel's result, a negative
/// errno value on failure; errno does not change.
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

/// Makes the call by the syscall function. Returns -1 on failure, with the reason in errno. In
/// lockstep the syscall function is replaced (verbs_provider/turns/calls/direct_calls.cc). Of
/// rocemu's own calls, only futex(2) is made in this way, since other threads of the program may
/// have to wake the calling thread.
template <class... Args>
long system_call(long number, Args... args) {
  const long words[6] = {as_word(args)...};
  if (number == SYS_futex)
    return ::syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  const long result =
      kernel_words(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace rocemu
