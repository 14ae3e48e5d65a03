// Opens a device as a program in `rocemu run` would: in a separate process, with libibverbs.
#pragma once

#include <string>

#include "emulator/command/doctor/diagnosis.h"

namespace rocemu::command {

/// The internal option with which `rocemu doctor` starts itself as the process that opens a device.
inline constexpr char kProbeOption[] = "--open-device";

/// Checks whether a device can be opened and used. Starts a NIC, and runs `rocemu doctor` again as
/// a program with this NIC; that process uses the device. Returns no findings if the NIC does not
/// start, since another check reports that.
Findings check_device();

/// Opens a device and uses it. Runs in the separate process, and prints the results for the parent
/// process. Returns the exit status.
int probe_device();

}  // namespace rocemu::command
