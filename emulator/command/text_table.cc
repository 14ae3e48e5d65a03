#include "emulator/command/text_table.h"

#include <algorithm>

namespace rocemu::command {

std::string Table::text(const std::string& indent) const {
  std::vector<size_t> widths(rows_[0].size());
  for (const std::vector<std::string>& row : rows_)
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line = indent;
    for (size_t i = 0; i < widths.size(); ++i)
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace rocemu::command
