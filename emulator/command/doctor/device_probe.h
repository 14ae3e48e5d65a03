// Opens a device as a program in `rocemu run` would: in a separate process, with libibverbs.
#pragma once

#include <string>

#include "emulator/command/doctor/diagnosis.h"

namespace rocemu::command {

/// The option that makes `rocemu doctor` the process that opens a device. It is not for users.
inline constexpr char kProbeOption[] = "--open-device";

/// Starts a NIC and, as a program with this NIC, `rocemu doctor` again, which opens a device and
/// uses it. Returns no findings if the NIC does not start, since another check reports that.
Findings check_device();

/// Opens a device and uses it, in the separate process. Prints the results for the parent process.
/// Returns the exit status.
int probe_device();

}  // namespace rocemu::command
