// The environment that a program needs to see the devices of a NIC.
#pragma once

#include <string>

namespace rocemu::command {

/// Directories into which programs write information about themselves; empty for none.
struct ProgramNotes {
  std::string call_sites;  // for call sites (abi/call_sites.h)
  std::string sanitizer;   // for misuse of verbs (abi/sanitizer_log.h)
};

/// Sets the environment of this process and of what it executes next, so that programs see the NIC
/// with the runtime directory `dir`.
void set_program_environment(const std::string& dir, const ProgramNotes& notes = {});

}  // namespace rocemu::command
