// Releases QPs, either for ibv_destroy_qp(3) or because their client has ended
#pragma once

#include "emulator/engine/verbs/command_context.h"

namespace rocemu::engine {

/// Releases the client's reference to the QP, and destroys the QP unless there are other references
/// (ibv_open_qp(3)). If the client has several references, the one with that user handle is
/// released.
void release_qp(CommandContext& context, QueuePair& qp, ClientId client, uint64_t user_handle);

}  // namespace rocemu::engine
