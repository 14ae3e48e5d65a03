// Taking completions out of a CQ.
#pragma once

#include <cstdint>

#include "emulator/abi/rings.h"
#include "verbs_provider/datapath/payload.h"
#include "verbs_provider/structs/cq.h"

namespace rocemu::provider {

/// Takes completions up to number `end` (a value of Cq::produced()), but stops at the first one
/// that the application may see, and copies it to `cqe`. Returns false if there was no such
/// completion. The caller must hold the CQ's lock. See receive_payload() for `known`.
bool take(Cq& cq, uint64_t end, abi::Cqe* cqe, WritablePage& known);

}  // namespace rocemu::provider
