// Control requests about protection domains, memory regions and windows, and device memory.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

// Each of these functions fills in the reply's body. It returns 0, or the errno value that its man
// page names.

int alloc_pd(CommandContext& context, ClientId client, uint32_t& handle);
int dealloc_pd(CommandContext& context, ClientId client, uint32_t handle);
int query_pd(const CommandContext& context, ClientId client, uint32_t handle);

int reg_mr(CommandContext& context, ClientId client, const abi::Request::Body& in,
           abi::Reply::Body& out);
int rereg_mr(CommandContext& context, ClientId client, const abi::Request::Body& in,
             abi::Reply::Body& out);
int dereg_mr(CommandContext& context, ClientId client, uint32_t handle);
int query_mr(const CommandContext& context, ClientId client, uint32_t handle,
             abi::Reply::Body& out);
int advise_mr(CommandContext& context, ClientId client, const abi::Request::Body& in);

int alloc_mw(CommandContext& context, ClientId client, const abi::Request::Body& in,
             abi::Reply::Body& out);
int dealloc_mw(CommandContext& context, ClientId client, uint32_t handle);

int alloc_dm(CommandContext& context, ClientId client, const abi::Request::Body& in,
             uint32_t& handle);
int free_dm(CommandContext& context, ClientId client, uint32_t handle);

}  // namespace rocemu::engine
