// Reports a call to librocemu-call-sites.so, if it is loaded (emulator/abi/call_sites.h).
#pragma once

#include <cstddef>
#include <string_view>

#include "emulator/abi/operations.h"

extern "C" __attribute__((weak, visibility("default"))) void rocemu_note_call(const char* name,
                                                                              size_t length,
                                                                              size_t count);

namespace rocemu {

inline bool are_calls_noted() {
  return rocemu_note_call != nullptr;
}

/// Reports the call. `call` is an operation or a command of librdmacm, `count` the number of work
/// requests.
template <class Call>
void note_call(Call call, size_t count = 1) {
  if (!are_calls_noted()) [[likely]]
    return;
  const std::string_view name = abi::name_of(call);
  rocemu_note_call(name.data(), name.size(), count);
}

}  // namespace rocemu
