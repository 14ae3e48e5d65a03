#include "emulator/command/faults/explanations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <sstream>
#include <string_view>

#include "emulator/abi/linux_names.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/faults/statuses_page.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::command {
namespace {

constexpr std::array kPrefixes = {"",     "IBV_", "IBV_WC_", "IBV_EVENT_", "RDMA_CM_EVENT_",
                                  "NAK_", "CM_",  "REJ_"};

using Cells = std::vector<std::string>;

/// Returns the cells of a row of a table, without backticks; nothing if the line is not a row.
Cells cells_of(const std::string& line) {
  Cells cells;
  if (!line.starts_with("| ")) return cells;
  std::string cell;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|') {
      const size_t first = cell.find_first_not_of(' ');
      const size_t last = cell.find_last_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
      cell.clear();
    } else if (line[i] != '`') {
      cell += line[i];
    }
  }
  return cells;
}

/// Reads the rows of the page's tables. Recognizes columns by their titles; skips the tables of
/// transitions.
std::vector<Explanation> read_page() {
  std::vector<Explanation> all;
  std::istringstream lines{std::string(kStatusesPage)};
  Cells titles;
  for (std::string line; std::getline(lines, line);) {
    const Cells cells = cells_of(line);
    if (cells.empty() && !line.starts_with("|")) titles.clear();
    if (cells.empty()) continue;
    if (titles.empty()) {
      titles = cells;
      continue;
    }
    if (titles[0].starts_with("transition")) continue;
    Explanation one;
    for (size_t i = 0; i < cells.size() && i < titles.size(); ++i) {
      if (i == 0) one.name = cells[i];
      if (titles[i].starts_with("cause") || titles[i] == "meaning") one.cause = cells[i];
      if (titles[i] == "what programs do") one.remedy = cells[i];
      if (titles[i] == "rule") one.rule = cells[i];
    }
    all.push_back(std::move(one));
  }
  return all;
}

/// Returns the name in upper case, with the same separator between all words.
std::string simplified(std::string_view name) {
  std::string text;
  for (const char c : name) {
    text +=
        c == ' ' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

}  // namespace

const std::vector<Explanation>& explanations() {
  static const std::vector<Explanation> all = [] {
    std::vector<Explanation> read = read_page();
    for (const sanitizer::Rule* rule : sanitizer::rules())
      read.push_back(
          {.name = std::string(rule->id),
           .cause = std::string(rule->summary) + " `rocemu run --sanitize` reports it as " +
                    (rule->severity == sanitizer::Severity::kError ? "an error" : "a warning") +
                    ".",
           .remedy = std::string(rule->remedy) + " (" + std::string(rule->clause) + ")",
           .rule = ""});
    return read;
  }();
  return all;
}

std::optional<Explanation> find_explanation(const std::string& name) {
  const std::string wanted = simplified(name);
  for (const char* prefix : kPrefixes) {
    for (const Explanation& one : explanations()) {
      if (simplified(one.name) == prefix + wanted) return one;
    }
  }
  for (int number = 1; number < 134; ++number) {
    const char* errno_name = abi::errno_name(number);
    if (errno_name != nullptr && wanted == errno_name)
      return Explanation{errno_name, std::strerror(number), "",
                         std::string("{on: verb, verb: reg_mr, do: {errno: ") + errno_name + "}}"};
  }
  return std::nullopt;
}

std::string nearest_explained(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Explanation& one : explanations()) names.push_back(one.name);
  for (const char* prefix : kPrefixes) {
    const std::string wanted = prefix + simplified(name);
    const std::string_view meant = nearest(wanted, names);
    if (!meant.empty()) return std::string(meant);
  }
  return "";
}

}  // namespace rocemu::command
