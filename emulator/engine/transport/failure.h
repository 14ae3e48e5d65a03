// The failure of QPs and SRQs
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine {

/// Moves the QP to the error state, and flushes its posted requests (IBTA vol 1, 10.3.1.5).
void enter_error(TransportContext& context, QueuePair& qp);
/// Fails all QPs and XRC SRQs that use a CQ that overran, and raises an event for each.
void fail_users(TransportContext& context, const CompletionQueue& cq);

}  // namespace rocemu::engine
