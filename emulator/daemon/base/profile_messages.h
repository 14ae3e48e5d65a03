// What the daemon logs of requests that the profile of a device refuses: a NIC gives an errno and
// no reason.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "emulator/abi/control.h"
#include "emulator/engine/device_profile.h"

namespace rocemu::daemon {

/// Logs the first refusal of each kind that one client meets: some programs find a limit by trial.
class ProfileMessages {
 public:
  /// Logs which limit of the profile refused the program's request with `error`, if one did.
  void explain(const engine::DeviceProfile& profile, const abi::Request& request, int error,
               pid_t program);

 private:
  std::set<std::string> logged_;  // the messages, without numbers
};

}  // namespace rocemu::daemon
