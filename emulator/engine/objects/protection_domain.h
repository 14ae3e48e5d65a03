// Protection domains (IBTA vol 1, 10.2.3).
#pragma once

#include <cstdint>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/linked_list.h"

namespace rocemu::engine {

struct ProtectionDomain {
  ProtectionDomain(PdId i, ClientId c) : id(i), client(c) {}
  PdId id;
  ClientId client;
  uint32_t users = 0;  // MRs, MWs, QPs, SRQs, AHs
  Links<ProtectionDomain> of_client;
};

}  // namespace rocemu::engine
