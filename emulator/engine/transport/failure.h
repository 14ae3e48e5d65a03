// How QPs fail, and SRQs.
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine {

/// Takes the QP to the error state: what is posted is flushed (IBTA vol 1, 10.3.1.5).
void enter_error(TransportContext& context, QueuePair& qp);
/// Fails whatever completes to a CQ that overran, with its event.
void fail_users(TransportContext& context, const CompletionQueue& cq);

}  // namespace rocemu::engine
