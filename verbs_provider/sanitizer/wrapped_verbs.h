// The verbs that create, modify and destroy objects, wrapped by the sanitizer
#pragma once

#include "verbs_provider/base/private_abi.h"

namespace rocemu::sanitizer {

/// Replaces the verbs that the sanitizer checks. `now_ns` is the function for the device time of a
/// context.
void wrap_verbs(provider::ContextOps* ops, uint64_t (*now_ns)(ibv_context*));

/// The original verbs
extern provider::ContextOps original;

}  // namespace rocemu::sanitizer
