// Writes what this process finds into the directory of the run (emulator/abi/sanitizer_log.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>

#include "emulator/sanitizer/program_objects.h"
#include "emulator/sanitizer/report.h"
#include "verbs_provider/sanitizer/stacks.h"

namespace rocemu::sanitizer {

/// Guarded by its user. `stacks` must outlive it.
class Log {
 public:
  Log(std::string directory, Stacks& stacks);

  /// Returns the report's index. What was reported at these places already is only counted.
  uint64_t write(const Report& report, bool unless_withdrawn);
  void withdraw(uint64_t index);
  /// Notes where an object was made, for reports of the NIC.
  void write_object(const Object& object, const char* device);
  /// Notes where the R_Key of a region was given up, of so many regions at most.
  void write_key(const Mr& region, const char* device, const Place& place);

 private:
  void append(const std::string& line);
  void write_place_of(const std::string& title, const char* device, const Place& place);
  void write_stack(uint32_t number);
  std::string json_of(const Place& place, std::string_view what);
  void count(uint64_t index);
  void map_counts();

  std::string directory_, counts_name_;
  Stacks& stacks_;
  uint64_t* counts_ = nullptr;
  std::set<uint32_t> written_stacks_;
  size_t keys_ = 0;                                    // that were written
  std::unordered_map<std::string, uint64_t> indices_;  // by rule and places
};

}  // namespace rocemu::sanitizer
