// `rocemu up --sanitize`: the directory of findings (abi/sanitizer_log.h) for the programs of all
// runs that join the shared NIC.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"
#include "emulator/command/sanitizer/sanitizer_options.h"

namespace rocemu::command {

/// Creates the directory anew. Returns its name.
std::string make_shared_sanitizer(const SanitizerOptions& options);

/// Removes the directory, if there is one.
void remove_shared_sanitizer();

/// Prints and writes the findings, and removes the directory. Returns whether there is an error
/// among them, or the report cannot be written.
bool finish_shared_sanitizer();

/// Returns the directory of a NIC's findings; nothing if the NIC does not check for misuse.
std::string sanitizer_directory_of(ControlClient& nic);

}  // namespace rocemu::command
