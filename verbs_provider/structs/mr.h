// A memory region as the client sees it.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace rocemu::provider
