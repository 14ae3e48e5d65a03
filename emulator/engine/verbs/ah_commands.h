// Control requests about address handles.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each of these functions fills in the reply's body. It returns 0, or the errno value that its man
// page names.

int create_ah(CommandContext& context, ClientId client, const abi::Request::Body& in,
              uint32_t& handle);
int destroy_ah(CommandContext& context, ClientId client, uint32_t handle);

}  // namespace rocemu::engine
