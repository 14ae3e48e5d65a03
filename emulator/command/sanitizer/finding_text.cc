#include "emulator/command/sanitizer/finding_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

namespace rocemu::command {
namespace {

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string in_hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

/// Returns "error [cq-overrun]".
std::string title_of(const sanitizer::Rule& rule) {
  return std::string(name_of(rule.severity)) + " [" + std::string(rule.id) + "]";
}

using Cells = std::array<std::string, 5>;

Cells cells_of(const FoundCallSite& site) {
  Cells cells{site.what, "", "", site.call, ""};
  char time[48];
  std::snprintf(time, sizeof time, "at %.3f s", site.time_s);
  cells[4] = time;
  if (site.stack.empty()) return cells;
  const StackFrame& frame = site.stack.front();
  if (!frame.function.empty()) {
    cells[1] = frame.function + (frame.line != 0 ? "()" : "+" + in_hex(frame.offset));
  } else {
    cells[1] = "+" + in_hex(frame.offset);
  }
  cells[2] = frame.line != 0 ? last_part(frame.file) + ":" + std::to_string(frame.line)
                             : last_part(frame.module);
  return cells;
}

std::string count_of(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

std::string in_words(const Misuse& finding) {
  const sanitizer::Rule& rule = *finding.rule;
  std::string text = title_of(rule) + ": " + finding.message + "\n";
  std::vector<Cells> rows;
  std::array<size_t, std::tuple_size_v<Cells>> widths{};
  for (const FoundCallSite& site : finding.sites) {
    rows.push_back(cells_of(site));
    for (size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], rows.back()[i].size());
  }
  for (const Cells& row : rows) {
    std::string line = "    ";
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (finding.count > 1)
    text += "    This was found " + std::to_string(finding.count) + " times.\n";
  return text + "    " + std::string(rule.remedy) + " (" + std::string(rule.clause) + ")\n";
}

std::string repetitions_of(const Misuse& finding) {
  return title_of(*finding.rule) + " was found " + std::to_string(finding.count) +
         " times: " + finding.message + "\n";
}

std::string summary_of(const std::vector<Misuse>& findings) {
  size_t errors = 0;
  std::set<std::string_view> rules;
  const sanitizer::Rule* worst = nullptr;
  for (const Misuse& one : findings) {
    rules.insert(one.rule->id);
    if (one.rule->severity == sanitizer::Severity::kError) ++errors;
    if (worst == nullptr || one.rule->severity > worst->severity) worst = one.rule;
  }
  if (worst == nullptr) return "";
  const size_t warnings = findings.size() - errors;
  std::string text;
  if (errors != 0) text = count_of(errors, "error");
  if (warnings != 0) text += (text.empty() ? "" : ", ") + count_of(warnings, "warning");
  return text + " in " + count_of(rules.size(), "rule") + "; rocemu explain " +
         std::string(worst->id);
}

}  // namespace rocemu::command
