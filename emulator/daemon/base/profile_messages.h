// Logs why the profile of a device refuses requests, since programs only see an errno, as with a
// real NIC.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "emulator/abi/control.h"
#include "emulator/engine/device_profile.h"

namespace rocemu::daemon {

/// Logs only the first refusal of each kind for a client, since some programs find a limit by
/// trial.
class ProfileMessages {
 public:
  /// If a limit of the profile explains why the program's request failed with `error`, logs this
  /// limit.
  void explain(const engine::DeviceProfile& profile, const abi::Request& request, int error,
               pid_t program);

 private:
  std::set<std::string> logged_;  // the messages, without numbers
};

}  // namespace rocemu::daemon
