// System calls that are always executed by the kernel, although the syscall function is replaced in
// this library. The result is the kernel's, a negative errno value on failure; errno does not
// change.
#pragma once

#include <sys/syscall.h>

#include "verbs_provider/system/system_call.h"

namespace rocemu::turns {

template <class... Args>
long kernel(long number, Args... arguments) {
  const long words[6] = {as_word(arguments)...};
  return kernel_words(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

}  // namespace rocemu::turns
