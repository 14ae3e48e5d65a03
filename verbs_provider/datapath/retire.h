// Frees the slots of the work requests that a completion finishes, when the completion is taken
// from its CQ.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {

/// Returns the slots of the WQEs that a completion finishes to their work queue. `index` is the
/// completion's place in its CQ, counted from the CQ's creation; the caller must hold the CQ's
/// lock.
///
/// Returns false if the application must not see the completion: its QP (or XRC SRQ) was destroyed,
/// or it belongs to a generation of the QP that a RESET ended.
bool retire(Context::Parts& parts, const abi::Cqe& cqe, uint64_t index);

}  // namespace rocemu::provider
