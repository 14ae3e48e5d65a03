#include "emulator/command/base/text_table.h"

#include <algorithm>

namespace rocemu::command {
namespace {

constexpr size_t kColumns = 80;

}  // namespace

std::string hexadecimal(uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

std::string psn_text(uint32_t psn, uint32_t first) {
  return "+" + std::to_string((psn - first) & 0xffffff) + " (" + std::to_string(psn) + ")";
}

std::string Table::text(const std::string& indent) const {
  std::vector<size_t> widths(rows_[0].size());
  for (const std::vector<std::string>& row : rows_)
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (size_t first = 1, end = 0; end < widths.size(); first = end) {
    size_t length = indent.size() + widths[0];
    for (end = first; end < widths.size(); ++end) {
      length += 2 + widths[end];
      if (length > kColumns && end > first) break;
    }
    for (const std::vector<std::string>& row : rows_) {
      std::string line = indent + row[0] + std::string(widths[0] - row[0].size() + 2, ' ');
      for (size_t i = first; i < end; ++i)
        line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
      line.resize(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  return text;
}

}  // namespace rocemu::command
