// What taking a completion means beyond reading it.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {

/// Gives the slots that a completion frees back to their work queue. `index` is the completion's
/// place in its CQ, counted from the CQ's creation; the CQ's lock is held.
///
/// False if the application is not to see the completion: its QP (or XRC SRQ) is gone, or it is of
/// a life of the QP that a RESET ended.
bool settle(Context::Parts& parts, const abi::Cqe& cqe, uint64_t index);

}  // namespace rocemu::provider
