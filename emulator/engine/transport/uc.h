// The receiving half of a UC QP. Messages arrive whole or not at all, and the QP sends no answers
// (IBTA vol 1, 9.8.2).
#pragma once

#include "emulator/engine/transport/context.h"

namespace rocemu::engine::uc {

void on_request(TransportContext& context, QueuePair& qp, const wire::Packet& packet,
                const wire::OpcodeInfo& info);

}  // namespace rocemu::engine::uc
