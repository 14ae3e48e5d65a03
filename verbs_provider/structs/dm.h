// Device memory in the client: a mapping of the process, which the daemon accesses like all other
// memory. The device only accounts for the total amount.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#include "verbs_provider/base/process.h"

namespace rocemu::provider {

struct Dm {
  ibv_dm dm;  // must be first
  std::byte* data = nullptr;
  size_t length = 0;
  const uint64_t allocated_by = this_process();  // the process that has the mapping
  std::atomic<uint32_t> users{0};                // number of memory regions
};

}  // namespace rocemu::provider
