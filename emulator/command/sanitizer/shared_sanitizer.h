// `rocemu up --sanitize`: the directory of findings (abi/sanitizer_log.h) that the programs of all
// runs write to which join the shared NIC.
#pragma once

#include <string>

#include "emulator/command/daemons/control_client.h"
#include "emulator/command/sanitizer/sanitizer_options.h"

namespace rocemu::command {

/// Makes the directory anew. Returns its name.
std::string make_shared_sanitizer(const SanitizerOptions& options);

/// Removes the directory, if there is one.
void remove_shared_sanitizer();

/// Prints and writes what was found, and removes the directory. Returns whether there is an error
/// among it, or the report cannot be written.
bool finish_shared_sanitizer();

/// Returns the directory that a NIC has its findings in; nothing if it looks for none.
std::string sanitizer_directory_of(ControlClient& nic);

}  // namespace rocemu::command
