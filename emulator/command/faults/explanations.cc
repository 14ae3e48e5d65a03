#include "emulator/command/faults/explanations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>

#include "emulator/abi/linux_names.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/faults/statuses_page.h"
#include "emulator/options/read_number.h"
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

constexpr int kMaxErrno = 133;  // EHWPOISON

/// Returns the errno value's explanation for any verb.
Explanation errno_explanation(int number) {
  const std::string name = abi::errno_name(number);
  return {name, std::strerror(number), "", "{on: verb, verb: reg_mr, do: {errno: " + name + "}}"};
}

/// Returns the number in "REJ_28" or "REJ_REASON_28"; nothing for any other text.
std::optional<uint64_t> reject_reason_in(std::string_view wanted) {
  for (const std::string_view prefix : {"REJ_REASON_", "REJ_"}) {
    if (wanted.starts_with(prefix)) return options::read_number(wanted.substr(prefix.size()));
  }
  return std::nullopt;
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
  if (const std::optional<uint64_t> reason = reject_reason_in(wanted)) {
    // The page begins the meaning of each reason with its number (IBTA vol 1, 12.6.7.2).
    const std::string meaning = "reason " + std::to_string(*reason) + ":";
    for (const Explanation& one : explanations())
      if (one.name.starts_with("REJ ") && one.cause.starts_with(meaning)) return one;
  }
  const std::optional<uint64_t> given = options::read_number(wanted);
  for (int number = 1; number <= kMaxErrno; ++number) {
    const char* const errno_name = abi::errno_name(number);
    if (errno_name == nullptr) continue;
    if (wanted == errno_name) return errno_explanation(number);
    // A number can be that of an errno value to which a row of the page applies.
    if (given && *given == static_cast<uint64_t>(number)) return find_explanation(errno_name);
  }
  return std::nullopt;
}

std::string nearest_explained(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Explanation& one : explanations()) names.push_back(one.name);
  for (int number = 1; number <= kMaxErrno; ++number)
    if (const char* const errno_name = abi::errno_name(number)) names.push_back(errno_name);
  for (const char* prefix : kPrefixes) {
    const std::string wanted = prefix + simplified(name);
    const std::string_view meant = nearest(wanted, names);
    if (!meant.empty()) return std::string(meant);
  }
  return "";
}

}  // namespace rocemu::command
