// Control requests about shared receive queues.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each of these functions fills in the reply's body. It returns 0, or the errno value that its man
// page names.

int create_srq(CommandContext& context, ClientId client, const abi::Request::Body& in,
               abi::Reply::Body& out);
int modify_srq(CommandContext& context, ClientId client, const abi::Request::Body& in);
int query_srq(CommandContext& context, ClientId client, uint32_t handle, abi::Reply::Body& out);
int destroy_srq(CommandContext& context, ClientId client, uint32_t handle);

}  // namespace rocemu::engine
