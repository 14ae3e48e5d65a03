// Taking completions out of a CQ.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/datapath/payload.h"
#include "verbs_provider/structs/cq.h"

namespace rocemu::provider {

/// Takes completions up to number `end` (a value of Cq::produced()), or until the first that the
/// application sees, which is copied. Returns false if there was none. The caller must hold the
/// CQ's lock. See receive_payload() for `known`.
bool take(Cq& cq, uint64_t end, abi::Cqe* cqe, WritablePage& known);

}  // namespace rocemu::provider
