// Log messages for requests that the profile of a device refuses: a real NIC returns an errno
// without a reason.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "emulator/abi/control.h"
#include "emulator/engine/device_profile.h"

namespace rocemu::daemon {

/// Logs the first refusal of each kind for a client, since some programs find a limit by trial.
class ProfileMessages {
 public:
  /// If a limit of the profile refused the program's request with `error`, logs this limit.
  void explain(const engine::DeviceProfile& profile, const abi::Request& request, int error,
               pid_t program);

 private:
  std::set<std::string> logged_;  // the messages, without numbers
};

}  // namespace rocemu::daemon
