// Writes the NIC's findings for rules of the sanitizer to the directory of abi/sanitizer_log.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "emulator/sanitizer/nic.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::daemon {

class FindingLog {
 public:
  /// The owner of an object
  struct Owner {
    pid_t pid = 0;
    std::string device;
  };

  /// Reads the names of the rules from the directory.
  explicit FindingLog(const std::string& directory);
  ~FindingLog();
  FindingLog(const FindingLog&) = delete;
  FindingLog& operator=(const FindingLog&) = delete;

  bool looks_for(const sanitizer::Rule& rule) const { return rules_.contains(&rule); }

  /// Sets the name that reports use for the process from now on.
  void name(pid_t pid, const std::string& program, uint32_t number);
  /// Writes a finding. If it occurs again for the same objects, it is only counted.
  void write(const sanitizer::NicFinding& finding, const Owner& owner);

 private:
  void append(const std::string& line) const;

  std::string directory_;
  sanitizer::Selection rules_;
  std::map<std::string, uint64_t> indices_;
  uint64_t* counts_ = nullptr;  // null if memory is exhausted
};

}  // namespace rocemu::daemon
