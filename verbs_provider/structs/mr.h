// A memory region in the client
#pragma once

#include <cstddef>
#include <cstdint>

#include "verbs_provider/base/private_abi.h"
#include "verbs_provider/context/region_memory.h"
#include "verbs_provider/structs/dm.h"

namespace rocemu::provider {

struct Mr {
  VerbsMr verbs;     // must be first
  Dm* dm = nullptr;  // the device memory of the region, as long as the region exists
  /// The range of this process's memory that the region contains, if SGEs refer to the region by
  /// this process's addresses.
  uint64_t own_address = 0, own_length = 0;
  RegisteredMemory memory{};  // unused if the region is on-demand, or belongs to the provider
  /// The mapping of a dma-buf, which is unmapped with the region.
  void* mapping = nullptr;
  size_t mapped = 0;
};

/// Returns the key of a region in Context::Parts::regions.
constexpr uint32_t region_number(uint32_t lkey) {
  return lkey >> 8;
}

}  // namespace rocemu::provider
