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
  std::string remedy;   // empty if there is nothing to mend
};

using Findings = std::vector<Finding>;

/// Can emulation work on this machine at all? (diagnosis_machine.cc)
Findings check_machine();

/// Which devices does a program have that is started here? Nothing if no NIC is up.
/// (diagnosis_nic.cc)
Findings check_nic();

/// Can this program see the devices? (diagnosis_program.cc)
Findings check_program(const std::string& name);

}  // namespace rocemu::command
