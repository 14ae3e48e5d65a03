// Writes the findings of this process into the directory of the run (emulator/abi/sanitizer_log.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/sanitizer/program_objects.h"
#include "emulator/sanitizer/report.h"
#include "verbs_provider/sanitizer/stacks.h"

namespace rocemu::sanitizer {

/// The log of this process. The caller must guard it. `stacks` must outlive it.
class Log {
 public:
  Log(std::string directory, Stacks& stacks);

  /// Writes a report. A report for the same call sites as an earlier one is only counted.
  void write(const Report& report);
  /// Writes a report that is valid unless it is withdrawn. Returns its number, for withdraw().
  uint64_t write_wait(const Report& report);
  void withdraw(uint64_t number);
  /// Records where an object was created, for reports of the NIC.
  void write_object(const Object& object, const char* device);
  /// Records where the R_Key of a region was released.
  void write_key(const Mr& region, const char* device, const CallSite& site);

 private:
  void append(const std::string& line);
  void write_line(const std::string& file, int flags, const std::string& line);
  void write_site_of(const std::string& title, const char* device, const CallSite& site);
  void write_stack(uint32_t number);
  std::string json_of(const CallSite& site, std::string_view what);
  std::string json_of(const Report& report, const std::string& more);
  std::string name_of_wait(uint64_t number) const;
  void count(uint64_t index);
  void map_counts();

  std::string directory_;
  std::string name_;  // of this program, used in file names
  Stacks& stacks_;
  uint64_t* counts_ = nullptr;
  std::set<uint32_t> written_stacks_;
  size_t objects_ = 0;                                 // written objects that have keys
  std::unordered_map<std::string, uint64_t> indices_;  // by rule and call sites
  std::vector<bool> waits_;                            // whether number index + 1 is in use
};

}  // namespace rocemu::sanitizer
