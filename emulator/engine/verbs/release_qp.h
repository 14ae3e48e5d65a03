// How QPs go: by ibv_destroy_qp(3) or with their client.
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

/// The client needs the QP no more: it goes, unless there are other references (ibv_open_qp(3)). Of
/// several that the client has, the one with that user handle is given back.
void release_qp(CommandContext& context, QueuePair& qp, ClientId client, uint64_t user_handle);

}  // namespace rocemu::engine
