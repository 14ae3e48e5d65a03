// System calls as the kernel answers them: a negative errno value in the result, and the caller's
// errno left as it was. What the shim does on its own account must not show in errno, and must not
// come back to the shim's own replacements of open(), write() and the like.
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
