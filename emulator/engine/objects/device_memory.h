// Device memory (ibv_alloc_dm(3)). The engine manages only its size; the bytes are in the client.
#pragma once

#include <cstdint>

#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/linked_list.h"

namespace rocemu::engine {

struct DeviceMemory {
  DeviceMemory(DmId i, ClientId c, uint64_t bytes) : id(i), client(c), length(bytes) {}
  DmId id;
  ClientId client;
  uint64_t length;
  Links<DeviceMemory> of_client;
};

}  // namespace rocemu::engine
