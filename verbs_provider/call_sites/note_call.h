// Tells librocemu-call-sites.so of a call, if that is loaded (emulator/abi/call_sites.h).
#pragma once

#include <cstddef>
#include <string_view>

#include "emulator/abi/rings.h"

extern "C" __attribute__((weak, visibility("default"))) void rocemu_note_call(const char* name,
                                                                              size_t length,
                                                                              size_t count);

namespace rocemu {

/// The call that rings such a doorbell, as recordings name it.
constexpr std::string_view call_of(abi::DoorbellKind kind) {
  switch (kind) {
    case abi::DoorbellKind::kSend:
      return "post_send";
    case abi::DoorbellKind::kRecv:
      return "post_recv";
    case abi::DoorbellKind::kSrqRecv:
      return "post_srq_recv";
    case abi::DoorbellKind::kCqArm:
      return "req_notify_cq";
  }
  return "unknown";
}

inline bool are_calls_noted() {
  return rocemu_note_call != nullptr;
}

/// `count`: for how many work requests.
inline void note_call(std::string_view name, size_t count = 1) {
  if (are_calls_noted()) [[unlikely]]
    rocemu_note_call(name.data(), name.size(), count);
}

}  // namespace rocemu
