// Marks, for MemorySanitizer, the results that verbs return through pointers as initialized, since
// libibverbs was built without it.
#pragma once

#include "verbs_provider/base/private_abi.h"

namespace rocemu::sanitizer {

/// Replaces the verbs that return results through pointers. Does nothing without MemorySanitizer.
void wrap_results(provider::ContextOps& ops);

}  // namespace rocemu::sanitizer
