// System calls with the kernel's result: a negative errno value on failure, and the caller's errno
// unchanged. System calls that the shim makes for itself must not change errno, and must not call
// the shim's own replacements of open(), write() and similar functions.
#pragma once

#include <cerrno>

#include "verbs_provider/system/system_call.h"

namespace rocemu::shim {

template <class... Args>
long raw_syscall(long number, Args... args) {
  const int saved = errno;
  long result = system_call(number, args...);
  if (result == -1) result = -errno;
  errno = saved;
  return result;
}

}  // namespace rocemu::shim
