// The names and operations under which recordings show the verbs that the provider itself refuses
#pragma once

#include <cstddef>
#include <string_view>

#include "emulator/abi/operations.h"

namespace rocemu::provider {

/// The name of a verb, without "ibv_", as a template argument; empty for a verb without a name.
template <size_t kSize>
struct VerbName {
  consteval VerbName(const char (&from)[kSize]) {
    for (size_t i = 0; i < kSize; ++i) text[i] = from[i];
  }
  char text[kSize]{};
};

/// The name of the function in libibverbs, such as "ibv_post_send"
template <size_t kSize>
consteval VerbName<kSize + 4> public_name(const VerbName<kSize>& name) {
  char text[kSize + 4]{'i', 'b', 'v', '_'};
  for (size_t i = 0; i < kSize; ++i) text[i + 4] = name.text[i];
  return VerbName<kSize + 4>(text);
}

/// Returns whether recordings contain the verb's refusals. They omit posts and requests for
/// notification, which can be refused a million times in a row.
constexpr bool is_recorded(std::string_view name) {
  for (const std::string_view one : {"", "post_send", "post_recv", "post_srq_recv", "bind_mw",
                                     "req_notify_cq", "free_context", "wr_complete"}) {
    if (name == one) return false;
  }
  return true;
}

inline abi::Op recorded_operation(std::string_view name) {
  return name == "reg_dmabuf_mr" ? abi::Op::kRegMr : abi::operation_of(name);
}

}  // namespace rocemu::provider
