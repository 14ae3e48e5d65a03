// The interface of the provider to libibverbs
#pragma once

#include "verbs_provider/base/private_abi.h"

namespace rocemu::provider {

extern const DeviceOps kDeviceOps;

}  // namespace rocemu::provider
