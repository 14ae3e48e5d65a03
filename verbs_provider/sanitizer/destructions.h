// Verbs that destroy objects.
#pragma once

#include "verbs_provider/base/private_abi.h"

namespace rocemu::sanitizer {

void wrap_destructions(provider::ContextOps& ops);

}  // namespace rocemu::sanitizer
