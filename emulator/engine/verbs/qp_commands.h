// Control requests about queue pairs.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each of these functions fills in the reply's body. It returns 0, or the errno value that its man
// page names.

int create_qp(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out);
int modify_qp(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out);
int query_qp(CommandContext& context, ClientId client, uint32_t handle, abi::Reply::Body& out);
int destroy_qp(CommandContext& context, ClientId client, const abi::Request::Body& in);

}  // namespace rocemu::engine
