// The failure of QPs and SRQs
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine {

/// Moves the QP to the error state: posted requests are flushed (IBTA vol 1, 10.3.1.5).
void enter_error(TransportContext& context, QueuePair& qp);
/// Fails all users of a CQ that overran, with the corresponding event.
void fail_users(TransportContext& context, const CompletionQueue& cq);

}  // namespace rocemu::engine
