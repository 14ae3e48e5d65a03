// Stores the results so far in a file, one per line. An interrupted exploration continues after the
// last complete line.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "emulator/explore/trials/run_facts.h"

namespace rocemu::explore {

class ResultStore {
 public:
  /// Opens the file. `identity` identifies the explored command and its options; a file with
  /// another identity is refused. Throws std::runtime_error.
  ResultStore(const std::filesystem::path& file, const Json& identity, bool resumes);

  /// Returns the result for a key; null if there is no result yet. The key consists of the scenario
  /// and the number of earlier runs with it.
  const RunFacts* find(const std::string& key) const;
  void add(const std::string& key, const RunFacts& facts);
  size_t size() const { return facts_.size(); }

  /// Adds the results in a file of another exploration of the same command, such as that of another
  /// shard (--shard).
  void merge(const std::filesystem::path& file, const Json& identity);

 private:
  void read(const std::filesystem::path& file, const Json& identity);

  std::filesystem::path file_;
  std::map<std::string, RunFacts> facts_;
  std::ofstream out_;
};

}  // namespace rocemu::explore
