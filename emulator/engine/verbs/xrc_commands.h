// Control requests about XRC domains and the target QPs in them.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each function fills in the reply's body and returns 0, or the errno value that its man page
// names.

int open_xrcd(CommandContext& context, ClientId client, const abi::Request::Body& in,
              uint32_t& handle);
int close_xrcd(CommandContext& context, ClientId client, uint32_t handle);
int open_qp(CommandContext& context, ClientId client, const abi::Request::Body& in,
            abi::Reply::Body& out);

}  // namespace rocemu::engine
