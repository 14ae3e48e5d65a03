// The environment of the verbs commands
#pragma once

#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/objects/completion_delivery.h"
#include "emulator/engine/objects/objects.h"
#include "emulator/engine/step.h"
#include "emulator/engine/transport/context.h"

namespace rocemu::engine {

struct CommandContext {
  Objects& objects;
  HostMemory& memory;
  CompletionDelivery& completions;
  TransportContext& transport;
  Step& step;
};

}  // namespace rocemu::engine
