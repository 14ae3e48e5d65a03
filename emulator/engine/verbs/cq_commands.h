// Control requests about completion queues.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each function fills in the reply's body and returns 0, or the errno value that its man page
// names.

int create_cq(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out);
/// Changes only the capacity: the daemon moves the waiting completions.
int resize_cq(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out);
int modify_cq(CommandContext& context, ClientId client, const abi::Request::Body& in);
int destroy_cq(CommandContext& context, ClientId client, uint32_t handle);

}  // namespace rocemu::engine
