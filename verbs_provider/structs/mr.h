// A memory region as the client sees it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/abi/control.h"
#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/context/region_memory.h"
#include "verbs_provider/structs/dm.h"

namespace rocemu::provider {

struct Mr {
  VerbsMr verbs;     // must be first
  Dm* dm = nullptr;  // whose memory it is, for as long as it exists
  /// What of this process's memory it is, if a list names that by its own addresses.
  uint64_t own_address = 0, own_length = 0;
  RegisteredMemory memory{};  // unused if the region is on demand, or the provider's own
  /// Of a dma-buf: its mapping, which goes with the region.
  void* mapping = nullptr;
  size_t mapped = 0;
};

/// What a region is called in Context::Parts::regions.
constexpr uint32_t region_number(uint32_t lkey) {
  return lkey >> 8;
}

/// Has the daemon register what `wanted` says, for `pd`, and fills all of the ibv_mr but its
/// address and length. Null with errno set if it refuses.
Mr* register_region(ibv_pd* pd, const decltype(abi::Request::Body::reg_mr)& wanted, MrType type);

}  // namespace rocemu::provider
