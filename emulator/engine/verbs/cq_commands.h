// Control requests about completion queues.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each of these functions fills in the reply's body. It returns 0, or the errno value that its man
// page names.

int create_cq(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out);
/// Changes the CQ's capacity in the engine. The daemon moves the completions that the client has
/// not taken.
int resize_cq(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out);
int modify_cq(CommandContext& context, ClientId client, const abi::Request::Body& in);
int destroy_cq(CommandContext& context, ClientId client, uint32_t handle);

}  // namespace rocemu::engine
