// The environment that a program needs to see the devices of a NIC.
#pragma once

#include <string>

namespace rocemu::command {

/// Directories where programs write what they do; empty: nowhere.
struct ProgramNotes {
  std::string call_sites;  // where their calls come from (abi/call_sites.h)
  std::string sanitizer;   // what is wrong with them (abi/sanitizer_log.h)
};

/// For this process, or what it executes next: the NIC in the runtime directory `dir`.
void set_program_environment(const std::string& dir, const ProgramNotes& notes = {});

}  // namespace rocemu::command
