// Columns of text, aligned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rocemu::command {

/// "0x1f": QPNs and keys, everywhere.
std::string hexadecimal(uint64_t value);

/// "+3 (103)": from the connection's first, and as packets have it.
std::string psn_text(uint32_t psn, uint32_t first);

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  /// As many cells as the header has.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Every line begins with `indent`. What does not fit in 80 columns follows below, again with the
  /// first column.
  std::string text(const std::string& indent) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rocemu::command
