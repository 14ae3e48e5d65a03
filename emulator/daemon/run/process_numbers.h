// Numbers the processes of each program in the order in which they first use the NIC, so that a
// rule can select a process although its pid differs in each run.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>

#include "emulator/engine/base/process_names.h"

namespace rocemu::daemon {

class ProcessNumbers {
 public:
  engine::ProcessName name_of(pid_t pid, const std::string& program) {
    const auto [found, is_new] = numbers_.try_emplace({pid, program}, 0);
    if (is_new) found->second = ++counts_[program];
    return {.program = program, .number = found->second};
  }

 private:
  std::map<std::pair<pid_t, std::string>, uint32_t> numbers_;
  std::map<std::string, uint32_t> counts_;
};

}  // namespace rocemu::daemon
