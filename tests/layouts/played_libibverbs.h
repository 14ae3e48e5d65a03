// An imitation of libibverbs by the test, of any version that rocemu supports, and what it knows
// about the plugin that was loaded together with it.
#pragma once

#include <cstddef>

namespace rocemu::layouts {

inline constexpr size_t kMostOperations = 96;
/// All bytes of its own members of verbs_context have this value.
inline constexpr unsigned char kOwnBytes = 0x5a;

struct PlayedLibibverbs {
  // The properties of the played libibverbs
  int newest_public = 0;
  size_t context_head = 0;  // bytes of verbs_context before the ibv_context
  size_t qp_ex_functions = 0;
  size_t port_attr_size = 0;
  size_t operations = 0;

  // The actions of the plugin
  const void* driver = nullptr;           // DeviceOps
  const void* ops[kMostOperations] = {};  // as many as there are operations
  bool context_fits = false;              // in the memory that was asked for
};

}  // namespace rocemu::layouts

extern "C" rocemu::layouts::PlayedLibibverbs* played_libibverbs();
