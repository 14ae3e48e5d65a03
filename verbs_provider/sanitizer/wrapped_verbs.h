// The verbs that make, change and destroy objects, with the sanitizer around them.
#pragma once

#include "verbs_provider/base/private_abi.h"

namespace rocemu::sanitizer {

/// Replaces the verbs that the sanitizer looks at. `now_ns` is the device time of a context.
void wrap_verbs(provider::ContextOps* ops, uint64_t (*now_ns)(ibv_context*));

/// Those that were there.
extern provider::ContextOps original;

}  // namespace rocemu::sanitizer
