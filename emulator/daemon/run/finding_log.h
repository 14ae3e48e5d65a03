// What the NIC finds of the sanitizer's rules, in the directory of abi/sanitizer_log.h.
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
  /// Whose an object is.
  struct Owner {
    pid_t pid = 0;
    std::string device;
  };

  /// Looks for the rules that the directory names.
  explicit FindingLog(const std::string& directory);
  ~FindingLog();
  FindingLog(const FindingLog&) = delete;
  FindingLog& operator=(const FindingLog&) = delete;

  bool looks_for(const sanitizer::Rule& rule) const { return rules_.contains(&rule); }

  /// From now on reports call that process so.
  void name(pid_t pid, const std::string& program, uint32_t number);
  /// Found again, about the same objects, it is only counted.
  void write(const sanitizer::NicFinding& finding, const Owner& owner);

 private:
  void append(const std::string& line) const;

  std::string directory_;
  sanitizer::Selection rules_;
  std::map<std::string, uint64_t> indices_;
  uint64_t* counts_ = nullptr;  // null if memory is lacking
};

}  // namespace rocemu::daemon
