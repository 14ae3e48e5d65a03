// Opens a device as a program in `rocemu run` would: in a separate process, with libibverbs.
#pragma once

#include <string>

#include "emulator/command/doctor/diagnosis.h"

namespace rocemu::command {

/// The option that makes `rocemu doctor` the process that opens a device. It is not for users.
inline constexpr char kProbeOption[] = "--open-device";

/// Starts a NIC, and under it this program again, which opens a device and uses it. Finds nothing
/// if no NIC starts: another check reports that.
Findings check_device();

/// The main function of that process: prints its results, which the parent process reads.
int probe_device();

}  // namespace rocemu::command
