// Opens a device as a program in `rocemu run` would: in a separate process, with libibverbs.
#pragma once

#include <string>

#include "emulator/command/doctor/diagnosis.h"

namespace rocemu::command {

/// The option of `rocemu doctor` that makes it the process that opens a device. Not for users.
inline constexpr char kProbeOption[] = "--open-device";

/// Starts a NIC and this program again under it, which opens a device and uses it. Nothing, if no
/// NIC starts: that is another check.
Findings check_device();

/// The main function of that process: prints its results for the process that started it.
int probe_device();

}  // namespace rocemu::command
