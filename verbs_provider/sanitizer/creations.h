// Verbs that create and modify objects
#pragma once

#include "verbs_provider/base/private_abi.h"

namespace rocemu::sanitizer {

void wrap_creations(provider::ContextOps& ops);

}  // namespace rocemu::sanitizer
