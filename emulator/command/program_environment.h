// What a program needs in its environment to see the devices of a NIC.
#pragma once

#include <string>

namespace rocemu::command {

/// For this process, or what it executes next: the NIC in the runtime directory `dir`.
/// `call_sites`: the directory where programs write where their calls come from (abi/call_sites.h);
/// empty: nowhere.
void set_program_environment(const std::string& dir, const std::string& call_sites = "");

}  // namespace rocemu::command
