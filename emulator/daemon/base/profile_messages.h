// What the daemon says of requests that the profile of a device refuses: a NIC gives an errno and
// no reason.
#pragma once

#include <sys/types.h>

#include "emulator/abi/control.h"
#include "emulator/engine/device_profile.h"

namespace rocemu::daemon {

/// Logs the limit of the profile that refused the program's request with `error`, if one did.
void explain_refusal(const engine::DeviceProfile& profile, const abi::Request& request, int error,
                     pid_t program);

}  // namespace rocemu::daemon
