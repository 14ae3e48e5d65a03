// Control requests about XRC domains and about the target QPs in these domains.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each of these functions fills in the reply's body. It returns 0, or the errno value that its man
// page names.

int open_xrcd(CommandContext& context, ClientId client, const abi::Request::Body& in,
              uint32_t& handle);
int close_xrcd(CommandContext& context, ClientId client, uint32_t handle);
int open_qp(CommandContext& context, ClientId client, const abi::Request::Body& in,
            abi::Reply::Body& out);

}  // namespace rocemu::engine
