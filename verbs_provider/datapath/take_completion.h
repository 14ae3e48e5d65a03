// Taking completions out of a CQ.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/datapath/payload.h"
#include "verbs_provider/structs/cq.h"

namespace rocemu::provider {

/// Takes completions until the `end`-th (a value of Cq::produced()), or until the first that the
/// application sees, which is copied. False if there was none. Under the CQ's lock. See
/// receive_payload() for `known`.
bool take(Cq& cq, uint64_t end, abi::Cqe* cqe, WritablePage& known);

}  // namespace rocemu::provider
