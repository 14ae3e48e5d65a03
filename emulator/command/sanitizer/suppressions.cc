#include "emulator/command/sanitizer/suppressions.h"

#include <algorithm>
#include <sstream>

#include "emulator/command/base/error.h"
#include "emulator/os/text_file.h"
#include "emulator/sanitizer/rules.h"

namespace rocemu::command {
namespace {

/// Returns whether the pattern matches the beginning of the text or, with `to_end`, the whole text.
bool matches_here(std::string_view pattern, std::string_view text, bool to_end) {
  if (pattern.empty()) return !to_end || text.empty();
  if (pattern.front() == '*') {
    for (size_t i = 0; i <= text.size(); ++i)
      if (matches_here(pattern.substr(1), text.substr(i), to_end)) return true;
    return false;
  }
  return !text.empty() && pattern.front() == text.front() &&
         matches_here(pattern.substr(1), text.substr(1), to_end);
}

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  const size_t last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  const bool from_begin = pattern.starts_with('^'), to_end = pattern.ends_with('$');
  if (from_begin) pattern.remove_prefix(1);
  if (to_end) pattern.remove_suffix(1);
  for (size_t i = 0; i <= (from_begin ? 0 : text.size()); ++i)
    if (matches_here(pattern, text.substr(i), to_end)) return true;
  return false;
}

Suppressions Suppressions::read(const std::string& file) {
  try {
    return parse(read_text_file(file, {.noun = "list of suppressions"}), file);
  } catch (const TextFileError& error) {
    throw Failure(std::string("--sanitize-suppressions: ") + error.what());
  }
}

Suppressions Suppressions::parse(const std::string& contents, const std::string& file) {
  std::istringstream lines(contents);
  Suppressions read;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string text = trimmed(line);
    if (text.empty() || text.starts_with('#')) continue;
    const size_t colon = text.find(':');
    const std::string rule = text.substr(0, colon);
    const sanitizer::Rule* const found = sanitizer::find_rule(rule);
    const std::string where = file + ":" + std::to_string(number) + ": ";
    if (colon == std::string::npos || colon + 1 == text.size())
      throw Failure(where + "'" + text + "' is not a suppression; write RULE:PATTERN");
    if (found == nullptr)
      throw Failure(where + "there is no rule '" + rule +
                    "'; rocemu explain --list prints the names");
    read.entries_.push_back({found, text.substr(colon + 1)});
  }
  return read;
}

bool Suppressions::suppress(const Misuse& finding) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    if (entry.rule != finding.rule) return false;
    for (const FoundCallSite& site : finding.sites)
      for (const StackFrame& frame : site.stack)
        if (matches(entry.pattern, frame.function) || matches(entry.pattern, frame.file) ||
            matches(entry.pattern, frame.module))
          return true;
    return false;
  });
}

}  // namespace rocemu::command
