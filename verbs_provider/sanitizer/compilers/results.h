// With MemorySanitizer: what verbs return by pointers is initialized, though libibverbs was built
// without it.
#pragma once

#include "verbs_provider/base/private_abi.h"

namespace rocemu::sanitizer {

/// Replaces the verbs that return something so. Does nothing without MemorySanitizer.
void wrap_results(provider::ContextOps& ops);

}  // namespace rocemu::sanitizer
