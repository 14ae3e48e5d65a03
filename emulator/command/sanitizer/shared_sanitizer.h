// `rocemu up --sanitize`: the directory of findings (abi/sanitizer_log.h) for the programs of all
// runs that join the shared NIC.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"
#include "emulator/command/sanitizer/sanitizer_options.h"

namespace rocemu::command {

/// Removes an earlier directory of findings, creates an empty one, and writes the options to it.
/// Returns its path.
std::string make_shared_sanitizer(const SanitizerOptions& options);

/// Removes the directory of findings, if it exists.
void remove_shared_sanitizer();

/// Prints the findings, writes the report, and removes the directory of findings. Returns true if
/// there is an error among the findings, or if the report cannot be written.
bool finish_shared_sanitizer();

/// Returns the directory of a NIC's findings; nothing if the NIC does not check for misuse.
std::string sanitizer_directory_of(ControlClient& nic);

}  // namespace rocemu::command
