// Writes what the NIC finds for rules of the sanitizer to the directory of abi/sanitizer_log.h.
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
  /// The process and the device to which the object of a finding belongs
  struct Owner {
    pid_t pid = 0;
    std::string device;
  };

  /// Reads from the directory which rules are selected.
  explicit FindingLog(const std::string& directory);
  ~FindingLog();
  FindingLog(const FindingLog&) = delete;
  FindingLog& operator=(const FindingLog&) = delete;

  bool looks_for(const sanitizer::Rule& rule) const { return rules_.contains(&rule); }

  /// Sets the name of the process in findings from now on.
  void name(pid_t pid, const std::string& program, uint32_t number);
  /// Writes a finding. If the same finding for the same objects was written before, only counts it.
  void write(const sanitizer::NicFinding& finding, const Owner& owner);

 private:
  void append(const std::string& line) const;

  std::string directory_;
  sanitizer::Selection rules_;
  std::map<std::string, uint64_t> indices_;
  uint64_t* counts_ = nullptr;  // null if memory is exhausted
};

}  // namespace rocemu::daemon
