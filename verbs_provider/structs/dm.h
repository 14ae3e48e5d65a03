// Device memory as the client sees it: a mapping of its own, which the daemon reaches as it reaches
// any other. The device only accounts for how much there is.
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
  const uint64_t allocated_by = this_process();  // whose mapping it is
  std::atomic<uint32_t> users{0};                // memory regions
};

}  // namespace rocemu::provider
