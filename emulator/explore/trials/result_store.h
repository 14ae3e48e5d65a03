// The results so far, in a file: an interrupted exploration continues after the last complete line.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "emulator/explore/trials/run_facts.h"

namespace rocemu::explore {

class ResultStore {
 public:
  /// `identity` says what is explored: results of another are refused. Throws std::runtime_error.
  ResultStore(const std::filesystem::path& file, const Json& identity, bool resumes);

  /// By the scenario and how often it was run before. Null if it was not run yet.
  const RunFacts* find(const std::string& key) const;
  void add(const std::string& key, const RunFacts& facts);
  size_t size() const { return facts_.size(); }

  /// Adds the results of another exploration of the same command, as --shard makes them.
  void merge(const std::filesystem::path& file, const Json& identity);

 private:
  void read(const std::filesystem::path& file, const Json& identity);

  std::filesystem::path file_;
  std::map<std::string, RunFacts> facts_;
  std::ofstream out_;
};

}  // namespace rocemu::explore
