#include "emulator/explore/trials/output_mask.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "emulator/explore/trials/durations.h"

namespace rocemu::explore {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(without_durations(line));
  return lines;
}

/// Replaces each number, decimal or hexadecimal, by #, and consecutive blanks by one blank.
std::string without_numbers(const std::string& line) {
  std::string form;
  for (size_t i = 0; i < line.size();) {
    const auto at = [&](size_t j) { return static_cast<unsigned char>(line[j]); };
    if (std::isdigit(at(i)) != 0) {
      while (i < line.size() && (std::isxdigit(at(i)) != 0 || line[i] == '.' || line[i] == 'x'))
        ++i;
      form += '#';
    } else if (line[i] == ' ' && form.ends_with(' ')) {
      ++i;
    } else {
      form += line[i++];
    }
  }
  return form;
}

/// Returns the lines that `other` does not contain, or contains less often than `lines`.
std::vector<std::string> only_in(const std::vector<std::string>& lines,
                                 const std::vector<std::string>& other) {
  std::multiset<std::string> there(other.begin(), other.end());
  std::vector<std::string> rest;
  for (const std::string& line : lines) {
    const auto found = there.find(line);
    if (found == there.end()) {
      rest.push_back(line);
    } else {
      there.erase(found);
    }
  }
  return rest;
}

/// Returns whether the parts, in some order, can be concatenated to the whole lines. If so, one
/// program wrote in the middle of another program's line.
bool are_joined(std::vector<std::string> wholes, std::vector<std::string> parts) {
  constexpr size_t kMost = 16;
  std::erase(wholes, "");
  std::erase(parts, "");
  if (wholes.empty() || parts.empty()) return wholes.empty() && parts.empty();
  if (wholes.size() > kMost || parts.size() > kMost) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!wholes.back().starts_with(parts[i])) continue;
    std::vector<std::string> fewer = parts, rest = wholes;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    rest.back().erase(0, parts[i].size());
    if (rest.back().empty()) rest.pop_back();
    if (are_joined(std::move(rest), std::move(fewer))) return true;
  }
  return false;
}

}  // namespace

OutputMask::OutputMask(const std::vector<std::string>& outputs, bool has_several_writers)
    : unordered_(has_several_writers) {
  const std::vector<std::string> first = lines_of(outputs.front());
  for (const std::string& other : outputs) {
    const std::vector<std::string> lines = lines_of(other);
    for (const auto* one : {&first, &lines}) {
      const auto* two = one == &first ? &lines : &first;
      std::multiset<std::string> there(two->begin(), two->end());
      for (const std::string& line : *one) {
        const auto found = there.find(line);
        if (found != there.end()) {
          there.erase(found);
        } else {
          masked_.insert(without_numbers(line));
        }
      }
    }
  }
  baseline_ = forms_of(outputs.front());
  for (const std::string& other : outputs) {
    std::vector<std::string> forms = forms_of(other);
    if (forms == baseline_) continue;
    unordered_ = true;
    std::vector<std::string> sorted = baseline_;
    std::ranges::sort(sorted);
    std::ranges::sort(forms);
    if (forms != sorted) useless_ = true;
  }
}

std::vector<std::string> OutputMask::forms_of(const std::string& output) const {
  std::vector<std::string> forms = lines_of(output);
  for (std::string& line : forms) {
    std::string form = without_numbers(line);
    if (masked_.contains(form)) line = std::move(form);
  }
  return forms;
}

bool OutputMask::agrees(const std::string& output) const {
  return difference(output).empty();
}

std::string OutputMask::difference(const std::string& output) const {
  if (useless_) return "";
  const std::vector<std::string> theirs = forms_of(output);
  const std::string none = "(nothing)";
  if (unordered_) {
    const std::vector<std::string> expected = only_in(baseline_, theirs),
                                   found = only_in(theirs, baseline_);
    if (are_joined(expected, found) || are_joined(found, expected)) return "";
    const auto first = [&](const auto& lines) { return lines.empty() ? none : lines.front(); };
    return "'" + first(found) + "' instead of '" + first(expected) + "'";
  }
  for (size_t i = 0; i < std::max(baseline_.size(), theirs.size()); ++i) {
    const std::string& expected = i < baseline_.size() ? baseline_[i] : none;
    const std::string& found = i < theirs.size() ? theirs[i] : none;
    if (expected != found)
      return "line " + std::to_string(i + 1) + " is '" + found + "' instead of '" + expected + "'";
  }
  return "";
}

}  // namespace rocemu::explore
