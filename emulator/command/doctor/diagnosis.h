// The checks of `rocemu doctor`.
#pragma once

#include <string>
#include <vector>

namespace rocemu::command {

enum class Level { kOk, kNote, kProblem };

struct Finding {
  Level level;
  std::string check;    // a short fixed name: "memory access"
  std::string message;  // what was found
  std::string remedy;   // empty if nothing needs to be fixed
};

using Findings = std::vector<Finding>;

/// Checks whether emulation can work at all on this machine (diagnosis_machine.cc).
Findings check_machine();

/// Reports the devices that a program started in this environment would see; nothing if no NIC is
/// up (diagnosis_nic.cc).
Findings check_nic();

/// Checks whether the program with this name or path can use the devices (diagnosis_program.cc).
Findings check_program(const std::string& name);

}  // namespace rocemu::command
