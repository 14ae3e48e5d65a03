// Copies long messages between this program and its peers when the daemon asks for it
// (abi::CopyJobs).
#pragma once

#include <cstdint>

#include "verbs_provider/context/context.h"

namespace rocemu::provider {

/// Makes the next copy that the daemon asked for. Returns false if there is none.
bool make_copy(Context::Parts& parts);

/// Returns whether the calling thread made a copy in the millisecond before `now_ns`
/// (CLOCK_MONOTONIC).
bool has_copied_lately(int64_t now_ns);
/// Notes that the calling thread made a copy at that time.
void note_copy(int64_t now_ns);

}  // namespace rocemu::provider
