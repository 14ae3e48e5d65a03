// Text in aligned columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rocemu::command {

/// Returns the number in hexadecimal, as all QPNs and keys are printed: "0x1f".
std::string hexadecimal(uint64_t value);

/// Returns a text such as "+3 (103)": the PSN relative to the connection's first PSN, and the PSN
/// in the packets.
std::string psn_text(uint32_t psn, uint32_t first);

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  /// Adds a row, which has the same number of cells as the header.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Returns the table, with `indent` before every line. Columns that do not fit in 80 characters
  /// are printed in another table below the first one; that table repeats the first column.
  std::string text(const std::string& indent) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rocemu::command
