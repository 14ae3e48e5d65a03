// System calls without the C library's function for them, which may be the shim's, a sanitizer's or
// a cancellation point.
#pragma once

#include <type_traits>

#include <sys/syscall.h>
#include <unistd.h>

namespace rocemu {

/// An argument as the kernel reads it: a whole register. syscall(2) is variadic, so an `int` stays
/// one, and of the seventh argument, which is on the stack, clang writes only that half.
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

/// The result is -1 on failure, with the reason in errno.
template <class... Args>
long system_call(long number, Args... args) {
  return ::syscall(number, as_word(args)...);
}

}  // namespace rocemu
