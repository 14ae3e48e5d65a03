// An imitation of libibverbs of any version that rocemu supports. It also records what the loaded
// plugin does.
#pragma once

#include <cstddef>

namespace rocemu::layouts {

inline constexpr size_t kMostOperations = 96;
/// The value of all bytes in libibverbs' own members of verbs_context.
inline constexpr unsigned char kOwnBytes = 0x5a;

struct PlayedLibibverbs {
  // The properties of the imitated libibverbs.
  int newest_public = 0;
  size_t context_head = 0;  // bytes of verbs_context before the ibv_context
  size_t qp_ex_functions = 0;
  size_t port_attr_size = 0;
  size_t operations = 0;

  // What the plugin passed to libibverbs.
  const void* driver = nullptr;           // DeviceOps
  const void* ops[kMostOperations] = {};  // one for each operation of the version
  // whether the context is within the memory that libibverbs was asked to allocate
  bool context_fits = false;
};

}  // namespace rocemu::layouts

extern "C" rocemu::layouts::PlayedLibibverbs* played_libibverbs();
