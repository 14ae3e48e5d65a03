// What a program needs in its environment to see the devices of a NIC.
#pragma once

#include <string>

namespace rocemu::command {

/// For this process, or what it executes next: the NIC in the runtime directory `dir`.
void set_program_environment(const std::string& dir);

}  // namespace rocemu::command
